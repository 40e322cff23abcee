import { Context, Effect, Layer } from "effect"
import * as Batcher from "#streams/kernel/Batcher.ts"
import type { LogQuarantine } from "#streams/kernel/LogQuarantine.ts"
import * as CoalescedFlush from "#streams/kernel/CoalescedFlush.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { AppConfig } from "#src/Config.ts"
import { CallLog, callLogConsumers } from "./CallLog.ts"
import { CallSink } from "./CallSink.ts"

/** Carries the log of calls into ClickHouse for as long as the layer lives. */
export class CallDrain extends Context.Service<
  CallDrain,
  {
    /** Afterwards ClickHouse has every call that this process had finished before. */
    readonly flush: Effect.Effect<void, SinkUnavailable>
    readonly stats: () => Batcher.BatcherStats
    readonly quarantine: LogQuarantine
  }
>()("signalbox/llm/CallDrain") {
  static readonly layer = Layer.effect(
    CallDrain,
    Effect.gen(function* () {
      const { log } = yield* CallLog
      const { limits } = yield* AppConfig
      const batcher = yield* Batcher.run({
        name: "calls into ClickHouse",
        log,
        consumer: log.consumer(callLogConsumers.clickHouse),
        sink: yield* CallSink,
        policy: {
          maxRecords: limits.batchRows,
          maxBytes: limits.batchBytes,
          maxAgeMillis: limits.batchAgeMillis
        },
        backoff: { baseMillis: limits.retryMinMillis, maxMillis: limits.retryMaxMillis },
        writeTimeoutMillis: limits.batchWriteMillis
      })
      const flush = yield* CoalescedFlush.make({
        // Answered calls may not be on disk yet: the batcher waits for them.
        flush: Effect.suspend(() => batcher.flushTo(log.nextOffset())),
        isPending: () => log.nextOffset() > log.durableOffset() || batcher.stats().behind > 0,
        everyMillis: limits.readFlushMillis
      })
      return CallDrain.of({ flush, stats: batcher.stats, quarantine: batcher.quarantine })
    })
  )
}
