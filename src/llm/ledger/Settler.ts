import { Context, Effect, Layer, Schedule } from "effect"
import * as Batcher from "#streams/kernel/Batcher.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { AppConfig } from "#src/Config.ts"
import { CallLog, callLogConsumers } from "#src/llm/usage/CallLog.ts"
import * as LedgerSink from "./LedgerSink.ts"
import { LimitStore } from "./LimitStore.ts"

/** Carries what calls have cost from their log into Postgres, for as long as the layer lives. */
export class Settler extends Context.Service<
  Settler,
  {
    readonly flush: Effect.Effect<void, SinkUnavailable>
    readonly stats: () => Batcher.BatcherStats
  }
>()("signalbox/llm/Settler") {
  /** Before anything is leased: what the log still has is settled, then what the run before had leased is given back. */
  static readonly layer = Layer.effect(
    Settler,
    Effect.gen(function* () {
      const { log } = yield* CallLog
      const { limits } = yield* AppConfig
      const store = yield* LimitStore
      yield* Effect.addFinalizer(() =>
        Effect.catch(store.release, (error) =>
          Effect.logWarning("leases stay until the next start, or until others give them up", error)
        )
      )
      const batcher = yield* Batcher.run({
        log,
        consumer: log.consumer(callLogConsumers.ledger),
        sink: yield* LedgerSink.make(store.owner),
        policy: {
          maxRecords: limits.settlementRecords,
          maxBytes: limits.settlementBytes,
          maxAgeMillis: limits.settlementAgeMillis
        },
        backoff: { baseMillis: limits.retryMinMillis, maxMillis: limits.retryMaxMillis }
      })
      const flush = Effect.suspend(() => batcher.flushTo(log.nextOffset()))
      yield* flush.pipe(
        Effect.tapError((error) => Effect.logWarning("calls of the last run are not settled yet", error)),
        Effect.retry(Schedule.spaced(limits.ledgerRetryMillis))
      )
      yield* store.release
      // The last calls may not be durable yet, and the batcher's own last flush would pass them over.
      yield* Effect.addFinalizer(() =>
        Effect.catch(flush, (error) =>
          Effect.logWarning("the last calls are settled at the next start", error)
        )
      )
      return Settler.of({ flush, stats: batcher.stats })
    })
  )
}
