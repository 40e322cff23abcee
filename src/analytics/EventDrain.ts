import { Context, Effect, Layer } from "effect"
import * as Batcher from "#streams/kernel/Batcher.ts"
import type { LogQuarantine } from "#streams/kernel/LogQuarantine.ts"
import * as SharedFlush from "#streams/kernel/SharedFlush.ts"
import { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { AppConfig } from "#src/Config.ts"
import { CountingLease, type CountingLeaseService } from "./counting/CountingLease.ts"
import { EventLog, eventLogConsumers } from "./EventLog.ts"
import { EventSink, type EventSinkStats } from "./EventSink.ts"

export interface EventDrainStats {
  readonly batcher: Batcher.BatcherStats
  readonly sink: EventSinkStats
}

/** Carries the log of events into ClickHouse for as long as the layer lives. */
export class EventDrain extends Context.Service<
  EventDrain,
  {
    /** Afterwards ClickHouse has every event that this process had answered 202 before. */
    readonly flush: Effect.Effect<void, SinkUnavailable>
    readonly stats: () => EventDrainStats
    readonly quarantine: LogQuarantine
  }
>()("signalbox/analytics/EventDrain") {
  static readonly layer = Layer.effect(
    EventDrain,
    Effect.gen(function* () {
      const log = yield* EventLog
      const { limits } = yield* AppConfig
      const sink = yield* EventSink
      const lease = yield* CountingLease
      const batcher = yield* Batcher.run({
        name: "events into ClickHouse",
        log,
        consumer: log.consumer(eventLogConsumers.clickHouse),
        sink,
        policy: {
          maxRecords: limits.batchRows,
          maxBytes: limits.batchBytes,
          maxAgeMillis: limits.batchAgeMillis
        },
        backoff: { baseMillis: limits.retryMinMillis, maxMillis: limits.retryMaxMillis },
        writeTimeoutMillis: limits.batchWriteMillis
      })
      const flush = yield* SharedFlush.make({
        flush: Effect.suspend(() => batcher.flushTo(log.durableOffset())),
        isPending: () => batcher.stats().behind > 0,
        everyMillis: limits.readFlushMillis
      })
      return EventDrain.of({
        flush,
        stats: () => ({ batcher: batcher.stats(), sink: sink.stats() }),
        quarantine: {
          ...batcher.quarantine,
          retry: (offset) => onlyCounting(lease, batcher.quarantine.retry(offset))
        }
      })
    })
  )
}

/** A record that was set aside changes visits as others do. */
const onlyCounting = <A, E, R>(lease: CountingLeaseService, retry: Effect.Effect<A, E, R>) =>
  Effect.suspend((): Effect.Effect<A, E | SinkUnavailable, R> =>
    lease.isCounting()
      ? retry
      : Effect.fail(new SinkUnavailable({ problem: lease.refusal(), cause: undefined }))
  )
