import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { RateDecision } from "#actors/accounts/RateBucket.ts"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import { Keys } from "./Keys.ts"
import { rateHeaders } from "./RateLimiting.ts"
import { RequestCounts } from "./RequestCounts.ts"

/** The check of a key at a hot endpoint. */
export type Entry =
  | { readonly _tag: "Unknown" }
  | {
      readonly _tag: "Known"
      readonly key: Principal
      readonly rate: RateDecision
      /** rate headers of the answer */
      readonly headers: ReadonlyArray<readonly [string, string]>
    }

/**
 * Authentication, rate limit and request counts for endpoints that are served beside the Effect pipeline, by the rules of
 * the middlewares `Authorization` and `RateLimit`.
 */
export class KeyGate extends Context.Service<
  KeyGate,
  {
    /** @param authorization the header as it came; "" for none */
    readonly enter: (authorization: string) => Effect.Effect<Entry, SqlError>
    /** The owner of a key as memory knows it, before a request's body is read; undefined: no key that could be good */
    readonly recall: (authorization: string) => Principal | "unknown" | undefined
    /** The request was answered, which its key's owner sees in their figures. */
    readonly record: (key: Principal, status: number) => void
  }
>()("signalbox/accounts/KeyGate") {
  static readonly layer = Layer.effect(
    KeyGate,
    Effect.gen(function* () {
      const keys = yield* Keys
      const buckets = yield* RateBuckets
      const counts = yield* RequestCounts
      const clock = yield* Clock.Clock
      const { limits } = yield* AppConfig
      return KeyGate.of({
        enter: Effect.fnUntraced(function* (authorization) {
          const key = yield* keys.authenticate(secretIn(authorization))
          if (key === undefined) return { _tag: "Unknown" }
          const perMinute = key.rateLimitPerMinute ?? limits.ratePerMinute
          // The limiter is given up only when the process is: that is a fault, not the caller's.
          const rate =
            buckets.takeNow(key.keyId, perMinute) ?? (yield* Effect.orDie(buckets.take(key.keyId, perMinute)))
          return { _tag: "Known", key, rate, headers: Object.entries(rateHeaders(rate)) }
        }),
        recall: (authorization) => keys.recall(secretIn(authorization)),
        record: (key, status) => counts.record(key.userId, status >= 400, clock.currentTimeMillisUnsafe())
      })
    })
  )
}

const secretIn = (authorization: string): string => bearer.exec(authorization)?.[1] ?? ""

const bearer = /^bearer +([^ ]+) *$/i
