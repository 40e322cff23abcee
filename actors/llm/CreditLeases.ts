/**
 * State: none of its own; one `CreditLease` per user who calls models.
 * Messages: none; holds are taken through their state, notices of other processes are handed to the actors that live.
 * Limits: `maxUsers` actors, an actor that is idle for `userIdleMillis` ends.
 * Restart policy: the kernel's. A call that meets an actor between two lives acquires again.
 * In a crash of an actor its calls go on, their holds end by themselves; those in line are refused as busy.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ActorUnavailable } from "../kernel/ActorError.ts"
import { monotonicMillis } from "../kernel/Monotonic.ts"
import * as Supervisor from "../kernel/Supervisor.ts"
import { CreditLease } from "./CreditLease.ts"
import type { Hold } from "./Hold.ts"
import type { HoldRefused, LeaseAsk, LeaseOptions } from "./LeaseAsk.ts"
import { LimitGrants, type LimitsAway } from "./LimitGrants.ts"

interface CreditLeasesOptions extends LeaseOptions {
  /** users with leases at once */
  readonly maxUsers: number
  /** longer than a call lasts without progress: its holds are unknown to the actor's next life */
  readonly userIdleMillis: number
}

interface LeaseStats {
  /** calls for which no lease in memory was enough */
  readonly asked: number
  /** of them, those that wait now */
  readonly waiting: number
  readonly refused: number
}

export type LeaseFailure = HoldRefused | LimitsAway | ActorUnavailable

/** Holds on the limits of users. */
export class CreditLeases extends Context.Service<
  CreditLeases,
  {
    /** From what is leased here, in some microseconds; undefined: `admit`. */
    admitNow(userId: string, ask: LeaseAsk): Hold | undefined
    admit(userId: string, ask: LeaseAsk): Effect.Effect<Hold, LeaseFailure>
    /** Makes a hold cover so many output tokens, or as many as it gets; the hold has the new amount. */
    extend(userId: string, hold: Hold, tokens: number): Effect.Effect<void, LeaseFailure>
    readonly stats: () => LeaseStats
  }
>()("signalbox/llm/CreditLeases") {
  static readonly layer = (options: CreditLeasesOptions): Layer.Layer<CreditLeases, never, LimitGrants> =>
    Layer.effect(CreditLeases, make(options))
}

const make = Effect.fnUntraced(function* (options: CreditLeasesOptions) {
  const grants = yield* LimitGrants
  const clock = yield* Clock.Clock
  const leases = yield* Supervisor.make({
    name: "credit-lease",
    maxIdleMillis: options.userIdleMillis,
    maxResidentActors: options.maxUsers,
    build: (userId: string, self) =>
      Effect.gen(function* () {
        const state = new CreditLease(userId, grants, options, () => monotonicMillis(clock))
        yield* Effect.addFinalizer(() => Effect.sync(() => state.close()))
        yield* self.fork(state.run)
        return { state, handlers: {} }
      })
  })
  grants.listen({
    recalled: (userId) => leases.peek(userId)?.recalled(),
    returned: (userId) => leases.peek(userId)?.wake()
  })
  let asked = 0
  let waiting = 0
  let refused = 0
  /** A call that is not served from memory. */
  const inLine = (effect: Effect.Effect<Hold, LeaseFailure>): Effect.Effect<Hold, LeaseFailure> =>
    Effect.suspend(() => {
      asked++
      waiting++
      return effect.pipe(
        Effect.onError(() => Effect.sync(() => refused++)),
        Effect.ensuring(Effect.sync(() => waiting--))
      )
    })
  return {
    admitNow: (userId: string, ask: LeaseAsk) => leases.peek(userId)?.admitNow(ask),
    admit: (userId: string, ask: LeaseAsk) =>
      Effect.flatMap(leases.acquire(userId), (state) => {
        const hold = state.admitNow(ask)
        return hold === undefined ? inLine(state.wait(ask)) : Effect.succeed(hold)
      }),
    extend: (userId: string, hold: Hold, tokens: number) =>
      Effect.flatMap(leases.acquire(userId), (state) => {
        if (hold.ended || tokens <= hold.tokens || state.extendNow(hold, tokens)) return Effect.void
        return Effect.asVoid(
          inLine(state.wait({ choices: [hold.choice], tokens, tokensMin: hold.tokens + 1 }, hold))
        )
      }),
    stats: (): LeaseStats => ({ asked, waiting, refused })
  }
})
