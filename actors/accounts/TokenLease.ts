import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { LeaseGrant, LeaseWanted } from "./RateBucket.ts"
import type { WindowAsk, WindowCount } from "./RateWindow.ts"

/** The shared buckets cannot be asked. */
export class LeaseUnavailable extends Schema.TaggedError<LeaseUnavailable>()("LeaseUnavailable", {
  cause: Schema.Defect()
}) {}

/**
 * The buckets and windows that all machines share (Redis). A lease ends after `leaseMillis`, and tokens in hand count against the
 * burst, so over all machines and any time: admitted <= burst + rate * elapsed. A crash loses the tokens in hand.
 */
export class TokenLease extends Context.Service<
  TokenLease,
  {
    /** Replaces this process's lease of the key by `held + granted` tokens, good for `leaseMillis` from now. */
    acquire(
      keyId: string,
      wanted: LeaseWanted,
      leaseMillis: number
    ): Effect.Effect<LeaseGrant, LeaseUnavailable>
    /** Takes the cost from the subject's window, or nothing, without a lease: such requests are rare. */
    takeWindow(ask: WindowAsk): Effect.Effect<WindowCount, LeaseUnavailable>
    readonly ping: Effect.Effect<void, LeaseUnavailable>
  }
>()("signalbox/accounts/TokenLease") {}
