import { Context, Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { CreditLeases } from "#actors/llm/CreditLeases.ts"
import { LimitGrants, LimitsAway } from "#actors/llm/LimitGrants.ts"
import { AppConfig } from "#src/Config.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import type { Admission, AdmissionAsk, AdmissionRefused } from "./Admission.ts"
import { FreeAdmission, HeldAdmission, refusalOf } from "./HeldAdmission.ts"
import { LimitStore } from "./LimitStore.ts"
import * as Payment from "./Payment.ts"
import { LedgerDrain } from "./LedgerDrain.ts"

/** Holds of money for calls that begin. The consumer of the log of calls (`LedgerDrain`) books their cost. */
export class Ledger extends Context.Service<
  Ledger,
  {
    /** Synchronous, from this process's leases. Undefined: `admit` has to ask. */
    readonly admitNow: (ask: AdmissionAsk) => Admission | undefined
    /** Waits up to 2 s if only other calls' holds stand in the way. The caller has to end the admission. */
    readonly admit: (ask: AdmissionAsk) => Effect.Effect<Admission, AdmissionRefused>
    /** Afterwards Postgres has every call that was in the log before. */
    readonly flush: Effect.Effect<void, SinkUnavailable>
    /** calls that wait for other calls' holds */
    readonly waiting: () => number
  }
>()("signalbox/llm/Ledger") {
  static readonly layerNoDeps = Layer.effect(
    Ledger,
    Effect.gen(function* () {
      const leases = yield* CreditLeases
      const paymentOf = yield* Payment.make
      const { flush } = yield* LedgerDrain
      yield* SampledMetrics.register([
        [
          "signalbox_ledger_waiting",
          "Calls that wait for what other calls hold",
          () => leases.stats().waiting
        ],
        [
          "signalbox_ledger_asked_total",
          "Calls for which no lease in memory was enough",
          () => leases.stats().asked
        ],
        [
          "signalbox_ledger_refused_total",
          "Calls that were refused for want of credits, caps or allowances",
          () => leases.stats().refused
        ]
      ])
      return Ledger.of({
        admitNow: (ask) => {
          const lease = paymentOf(ask)
          if (lease === undefined) return new FreeAdmission(ask.outputTokens)
          const hold = leases.admitNow(ask.userId, lease)
          return hold === undefined ? undefined : new HeldAdmission(leases, hold, ask)
        },
        admit: (ask) =>
          Effect.suspend(() => {
            const lease = paymentOf(ask)
            if (lease === undefined) return Effect.succeed<Admission>(new FreeAdmission(ask.outputTokens))
            return leases.admit(ask.userId, lease).pipe(
              Effect.map((hold): Admission => new HeldAdmission(leases, hold, ask)),
              Effect.mapError(refusalOf)
            )
          }),
        flush,
        waiting: () => leases.stats().waiting
      })
    })
  )

  /** Needs Postgres, the log of calls, the keys and the directories of plans and subscriptions. */
  static readonly layer = this.layerNoDeps.pipe(
    Layer.provide(Layer.suspend(() => leasesLayer)),
    Layer.provideMerge(LedgerDrain.layer),
    Layer.provideMerge(LimitStore.layer)
  )
}

/** Leases begin when the earlier run's have been settled and given back: until then the limits are away. */
const grantsLayer = Layer.effect(
  LimitGrants,
  Effect.gen(function* () {
    const { isSettled } = yield* LedgerDrain
    const store = yield* LimitStore
    const unsettled = Effect.fail(new LimitsAway({ problem: "calls of the last run are not settled yet" }))
    return LimitGrants.of({
      ...store,
      grant: (asks) => Effect.suspend(() => (isSettled() ? store.grant(asks) : unsettled)),
      epoch: () => (isSettled() ? store.epoch() : undefined)
    })
  })
)

const leasesLayer = Layer.unwrap(
  Effect.map(AppConfig, ({ limits }) =>
    CreditLeases.layer({
      waitMillis: limits.ledgerWaitMillis,
      waiting: limits.ledgerWaiting,
      pollMillis: limits.ledgerPollMillis,
      scarceMillis: limits.ledgerScarceMillis,
      idleMillis: limits.ledgerIdleMillis,
      maxUsers: limits.ledgerUsers,
      userIdleMillis: limits.ledgerUserIdleMillis
    })
  )
).pipe(Layer.provide(grantsLayer))
