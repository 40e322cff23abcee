import { Context, Effect, Layer, Schedule } from "effect"
import type { BatcherStats } from "#streams/kernel/Batcher.ts"
import { AppConfig } from "#src/Config.ts"
import * as Drain from "#src/infra/drains/Drain.ts"
import { type ComponentState, degraded } from "#src/infra/telemetry/Readiness.ts"
import { CallLog, callLogConsumers } from "#src/llm/usage/CallLog.ts"
import * as LedgerSink from "./LedgerSink.ts"
import { LimitStore } from "./LimitStore.ts"

/** Carries the cost of calls from their log into Postgres, for as long as the layer lives. */
export class LedgerDrain extends Context.Service<
  LedgerDrain,
  Pick<Drain.Drain, "flush"> & {
    /** The rest of the earlier run is settled and given back: before that nothing may be leased. */
    readonly isSettled: () => boolean
  }
>()("signalbox/llm/LedgerDrain") {
  /**
   * Before anything is leased: the rest of the log is settled, then the leases of the earlier run are given back. A
   * failure of either is tried again in the background, and the server listens meanwhile.
   */
  static readonly layer = Layer.effect(
    LedgerDrain,
    Effect.gen(function* () {
      const { log } = yield* CallLog
      const { limits } = yield* AppConfig
      const store = yield* LimitStore
      let isSettled = false
      yield* Effect.addFinalizer(() =>
        Effect.catch(
          isSettled ? Effect.timeout(store.release, limits.settlementWriteMillis) : Effect.void,
          (error) =>
            Effect.logWarning("leases stay until the next start, or until others give them up", error)
        )
      )
      const { flush } = yield* Drain.make({
        name: "ledger",
        title: "settlements into Postgres",
        log,
        consumer: callLogConsumers.ledger,
        sink: yield* LedgerSink.make(store.owner),
        policy: {
          maxRecords: limits.settlementRecords,
          maxBytes: limits.settlementBytes,
          maxAgeMillis: limits.settlementAgeMillis
        },
        writeTimeoutMillis: limits.settlementWriteMillis,
        metrics: {
          behind: ["signalbox_ledger_behind", "Calls in the log that Postgres has not booked yet"],
          failures: ["signalbox_ledger_booking_failures_total", "Attempts to book calls that failed"]
        },
        ready: ["ledger", (stats) => stateOf(isSettled, stats)]
      })
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
      return LedgerDrain.of({ flush, isSettled: () => isSettled })
    })
  )
}

const stateOf = (isSettled: boolean, { behind, trouble }: BatcherStats): ComponentState => {
  const waiting = `${behind} calls to book`
  if (isSettled) return Drain.stateOf(waiting, "balances are behind", trouble)
  const [left, meanwhile] = [`${waiting} of the last run`, "credits cannot be spent before"]
  return trouble === undefined
    ? degraded(`${left}, and ${meanwhile}`)
    : Drain.stateOf(left, meanwhile, trouble)
}
