import { Context, Effect, Layer, Schedule } from "effect"
import * as Batcher from "#streams/kernel/Batcher.ts"
import type { LogQuarantine } from "#streams/kernel/LogQuarantine.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { AppConfig } from "#src/Config.ts"
import { CallLog, callLogConsumers } from "#src/llm/usage/CallLog.ts"
import * as LedgerSink from "./LedgerSink.ts"
import { LimitStore } from "./LimitStore.ts"

/** Carries the cost of calls from their log into Postgres, for as long as the layer lives. */
export class Settler extends Context.Service<
  Settler,
  {
    readonly flush: Effect.Effect<void, SinkUnavailable>
    readonly stats: () => Batcher.BatcherStats
    readonly quarantine: LogQuarantine
    /** The rest of the earlier run is settled and given back: before that nothing may be leased. */
    readonly isSettled: () => boolean
  }
>()("signalbox/llm/Settler") {
  /**
   * Before anything is leased: the rest of the log is settled, then the leases of the earlier run are given back. A
   * failure of either is tried again in the background, and the server listens meanwhile.
   */
  static readonly layer = Layer.effect(
    Settler,
    Effect.gen(function* () {
      const { log } = yield* CallLog
      const { limits } = yield* AppConfig
      const store = yield* LimitStore
      let isSettled = false
      yield* Effect.addFinalizer(() =>
        Effect.catch(isSettled ? store.release : Effect.void, (error) =>
          Effect.logWarning("leases stay until the next start, or until others give them up", error)
        )
      )
      const batcher = yield* Batcher.run({
        name: "settlements into Postgres",
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
      const settleUp = Effect.andThen(Effect.andThen(flush, store.release), () =>
        Effect.sync(() => {
          isSettled = true
        })
      )
      yield* Effect.catch(settleUp, (error) =>
        Effect.gen(function* () {
          const waiting = "calls of the last run are not settled yet: credits cannot be spent before"
          yield* Effect.logWarning(waiting, error)
          yield* Effect.forkScoped(
            settleUp.pipe(
              Effect.retry(Schedule.spaced(limits.ledgerRetryMillis)),
              Effect.andThen(Effect.logInfo("calls of the last run are settled: credits can be spent"))
            )
          )
        })
      )
      // The last calls may not be durable yet, and the batcher's own last flush would pass them over.
      yield* Effect.addFinalizer(() =>
        Effect.catch(flush, (error) =>
          Effect.logWarning("the last calls are settled at the next start", error)
        )
      )
      return Settler.of({
        flush,
        stats: batcher.stats,
        quarantine: batcher.quarantine,
        isSettled: () => isSettled
      })
    })
  )
}
