import { Context, Effect, Layer } from "effect"
import type { BatcherStats } from "#streams/kernel/Batcher.ts"
import type { LogQuarantine } from "#streams/kernel/LogQuarantine.ts"
import { SinkUnavailable } from "#streams/kernel/Sink.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import * as ImportRecord from "#streams/analytics/ImportRecord.ts"
import { AppConfig } from "#src/Config.ts"
import { CountingLease, type CountingLeaseService } from "../counting/CountingLease.ts"
import * as EventLane from "./EventLane.ts"
import { EventLog, eventLogConsumers, ImportLog, importLogConsumers } from "../ingest/EventLog.ts"
import { EventSink, type EventSinkStats } from "./EventSink.ts"

export interface EventDrainStats {
  /** of live events */
  readonly batcher: BatcherStats
  /** of imported ones */
  readonly imports: BatcherStats
  readonly sink: EventSinkStats
}

/**
 * Carries the logs of events into ClickHouse for as long as the layer lives: live ones and imported ones in lanes of their
 * own, of which the second gives way to the first.
 */
export class EventDrain extends Context.Service<
  EventDrain,
  {
    /** Afterwards ClickHouse has every event of the site that this process had answered 202 before. */
    readonly flush: (site: string) => Effect.Effect<void, SinkUnavailable>
    /** As `flush`, for readers: a store that is behind by more than a few seconds is read as it is. */
    readonly freshen: (site: string) => Effect.Effect<void, SinkUnavailable>
    readonly stats: () => EventDrainStats
    readonly quarantine: LogQuarantine
    readonly importQuarantine: LogQuarantine
  }
>()("signalbox/analytics/EventDrain") {
  static readonly layer = Layer.effect(
    EventDrain,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sink = yield* EventSink
      const lease = yield* CountingLease
      const [log, importLog] = [yield* EventLog, yield* ImportLog]
      const live = yield* EventLane.make({
        name: "events into ClickHouse",
        log,
        consumer: log.consumer(eventLogConsumers.clickHouse),
        sink,
        siteOf: EventRecord.siteOf,
        batchRows: limits.batchRows
      })
      const imports = yield* EventLane.make({
        name: "imported events into ClickHouse",
        log: importLog,
        consumer: importLog.consumer(importLogConsumers.clickHouse),
        sink: sink.imports,
        siteOf: (record) => EventRecord.siteOf(ImportRecord.eventOf(record)),
        batchRows: limits.importBatchRows
      })
      const both = (flush: (lane: EventLane.EventLane) => Effect.Effect<void, SinkUnavailable>) =>
        Effect.forEach([live, imports], flush, { concurrency: 2, discard: true })
      return EventDrain.of({
        flush: (site) => both((lane) => lane.flush(site)),
        freshen: (site) =>
          both((lane) =>
            Effect.catchIf(
              lane.flush(site),
              ({ reason }) => reason === "behind",
              () => Effect.void
            )
          ),
        stats: () => ({ batcher: live.stats(), imports: imports.stats(), sink: sink.stats() }),
        quarantine: whileHolder(lease, live.quarantine),
        importQuarantine: whileHolder(lease, imports.quarantine)
      })
    })
  )
}

/** A record that was set aside changes visits as others do. */
const whileHolder = (lease: CountingLeaseService, quarantine: LogQuarantine): LogQuarantine => ({
  ...quarantine,
  retry: (offset) =>
    Effect.suspend(() =>
      lease.isCounting()
        ? quarantine.retry(offset)
        : Effect.fail(new SinkUnavailable({ problem: lease.refusal(), cause: undefined }))
    )
})
