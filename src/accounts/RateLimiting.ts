import { Effect, Layer, type Types } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import type { RateDecision } from "#actors/accounts/RateBucket.ts"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { OpenAiRateLimit, RateLimit } from "#schemas/core/RateLimit.ts"
import { AppConfig, type Config } from "#src/Config.ts"
import { flat, nested } from "#src/http/ErrorFormat.ts"

/** The longest wait that a client should try; beyond it `x-should-retry: false`. Source: contract/http#rate-limits. */
const retryWorthwhileSeconds = 60

/** The headers of an answer that tell its key's rate. Source: contract/http#rate-limits. */
export const rateHeaders = (decision: RateDecision): Record<string, string> => ({
  "ratelimit-limit": String(decision.limit),
  "ratelimit-remaining": String(decision.remaining),
  "ratelimit-reset": String(decision.resetSeconds),
  ...(decision.allowed ? {} : { "retry-after": String(decision.retryAfterSeconds) }),
  ...(decision.retryAfterSeconds > retryWorthwhileSeconds ? { "x-should-retry": "false" } : {})
})

interface Answers<R, F> {
  rateLimited(text: string): R
  forbidden(text: string): F
}

const limit =
  <R, F>(buckets: RateBuckets["Service"], config: Config, family: Answers<R, F>) =>
  (httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled>) =>
    Effect.gen(function* () {
      const { keyId, rateLimitPerMinute } = yield* CurrentKey
      const rate = rateLimitPerMinute ?? config.limits.ratePerMinute
      // The limiter is given up only when the process is: that is the server's fault, not the caller's.
      const decision = buckets.takeNow(keyId, rate) ?? (yield* Effect.orDie(buckets.take(keyId, rate)))
      yield* HttpEffect.appendPreResponseHandler((_, response) =>
        Effect.succeed(HttpServerResponse.setHeaders(response, rateHeaders(decision)))
      )
      if (decision.allowed) return yield* httpEffect
      const text = `Rate limit of ${decision.limit} requests a minute reached; try again in ${decision.retryAfterSeconds} s`
      return yield* config.rateLimitMode === "block"
        ? Effect.fail(family.forbidden(text))
        : Effect.fail(family.rateLimited(text))
    })

const dependencies = Effect.gen(function* () {
  return [yield* RateBuckets, yield* AppConfig] as const
})

/** `RateLimit` of both families. */
export const layer = Layer.mergeAll(
  Layer.effect(
    RateLimit,
    Effect.map(dependencies, ([buckets, config]) => limit(buckets, config, flat))
  ),
  Layer.effect(
    OpenAiRateLimit,
    Effect.map(dependencies, ([buckets, config]) => limit(buckets, config, nested))
  )
)
