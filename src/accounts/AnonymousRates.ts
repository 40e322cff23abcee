import { hash } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import type { RateDecision } from "#actors/accounts/RateBucket.ts"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import { AppConfig } from "#src/Config.ts"
import { addressBlock } from "#src/front/ClientAddress.ts"

/**
 * Token buckets for requests without a key: one for each reader's address (of IPv6, the /64), as large as a key's.
 * Their names, which a shared store may see, are hashes: no address is kept.
 */
export class AnonymousRates extends Context.Service<
  AnonymousRates,
  { readonly take: (address: string) => Effect.Effect<RateDecision> }
>()("signalbox/accounts/AnonymousRates") {
  static readonly layer = Layer.effect(
    AnonymousRates,
    Effect.gen(function* () {
      const buckets = yield* RateBuckets
      const { limits } = yield* AppConfig
      // The limiter is given up only when the process is: that is the server's fault, not the caller's.
      return {
        take: (address) => Effect.orDie(buckets.take(bucketOf(address), limits.ratePerMinute))
      }
    })
  )
}

const bucketOf = (address: string): string =>
  `anonymous ${hash("sha256", `anonymous ${addressBlock(address)}`, "base64url").slice(0, 22)}`
