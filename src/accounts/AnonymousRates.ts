import { Context, Effect, Layer } from "effect"
import type { RateDecision } from "#actors/accounts/RateBucket.ts"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import { AppConfig } from "#src/Config.ts"

/** Token buckets for what is asked without a key: one for each thing that is asked about, as large as a key's. */
export class AnonymousRates extends Context.Service<
  AnonymousRates,
  { readonly take: (of: string) => Effect.Effect<RateDecision> }
>()("signalbox/accounts/AnonymousRates") {
  static readonly layer = Layer.effect(
    AnonymousRates,
    Effect.gen(function* () {
      const buckets = yield* RateBuckets
      const { limits } = yield* AppConfig
      // The limiter is given up only when the process is: that is a fault, not the caller's.
      return { take: (of) => Effect.orDie(buckets.take(`anonymous ${of}`, limits.ratePerMinute)) }
    })
  )
}
