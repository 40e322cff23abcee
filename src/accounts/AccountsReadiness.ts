import { Effect, Layer } from "effect"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import type { MirrorStatus } from "#src/infra/postgres/Mirror.ts"
import { type ComponentState, degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { KeyDirectory } from "./KeyDirectory.ts"

/** Without Postgres a component is degraded: keys and sites are still known, other reads answer 503. */
const mirrored = (status: MirrorStatus): ComponentState =>
  status.suspended
    ? degraded(
        `away for ${Math.round(status.staleMillis / 1000)} s: keys and sites are served from memory, ` +
          "revocation within 1 s is suspended"
      )
    : up

/** Postgres and rate limits on `/readyz`. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const keys = yield* KeyDirectory
    const buckets = yield* RateBuckets
    yield* register(
      "postgres",
      Effect.sync(() => mirrored(keys.status()))
    )
    yield* register(
      "rate-limits",
      Effect.sync(() =>
        buckets.stats().sharing === "away" ? degraded("Redis is away: every process limits on its own") : up
      )
    )
  })
)
