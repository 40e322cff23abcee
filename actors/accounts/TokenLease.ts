/**
 * State: none here; a bucket per key and a window per subject that all machines share, kept by Redis behind this port.
 * Messages: `acquire` for one key, one at a time per process; `takeWindow`; `ping`. Limits: a lease ends after `leaseMillis`, and
 * tokens in hand count against the burst, so over all machines and any time: admitted <= burst + rate * elapsed.
 * Restart policy: none; a failure makes the buckets process-local until `ping` succeeds.
 * In a crash of a process its tokens are lost until `leaseMillis` has passed.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { LeaseGrant, LeaseWanted } from "./RateBucket.ts"
import type { WindowAsk, WindowCount } from "./RateWindow.ts"

/** The shared buckets cannot be asked. */
export class LeaseUnavailable extends Schema.TaggedError<LeaseUnavailable>()("LeaseUnavailable", {
  cause: Schema.Defect()
}) {}

/** The buckets and windows that all machines share. */
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
