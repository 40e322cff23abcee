import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import * as BlobSweeps from "#src/infra/blobs/BlobSweeps.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { Idempotency } from "#src/infra/postgres/Idempotency.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import type { RoomServer } from "#src/Room.ts"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import type { CacheStatus } from "#src/infra/postgres/CachedTable.ts"
import { type ComponentState, degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { KeyDirectory } from "./Keys.ts"
import * as JobsRoutes from "#src/system/JobsRoutes.ts"
import * as QuarantineRoutes from "#src/system/QuarantineRoutes.ts"
import * as SystemRoutes from "#src/system/SystemRoutes.ts"
import * as AccountRoutes from "./AccountRoutes.ts"
import * as Admission from "./Admission.ts"
import * as AdminRoutes from "./AdminRoutes.ts"
import { fileRoutes } from "./FileTransfer.ts"
import * as KeysRoutes from "./KeysRoutes.ts"
import * as SessionRoutes from "./sessions/SessionRoutes.ts"
import * as Sessions from "./sessions/Sessions.ts"
import * as SignIn from "./sessions/SignIn.ts"

/** Without Postgres a component is degraded: keys and sites are still known, other reads answer 503. */
const served = (status: CacheStatus): ComponentState =>
  status.suspended
    ? degraded(
        `away for ${Math.round(status.staleMillis / 1000)} s: keys and sites are served from memory, ` +
          "revocation within 1 s is suspended"
      )
    : up

/** Postgres and rate limits on `/readyz`. */
const readiness = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const keys = yield* KeyDirectory
    const buckets = yield* RateBuckets
    yield* register(
      "postgres",
      Effect.sync(() => served(keys.status()))
    )
    yield* register(
      "rate-limits",
      Effect.sync(() =>
        buckets.stats().sharing === "away" ? degraded("Redis is away: every process limits on its own") : up
      )
    )
  })
)

const endpoints = HttpApiBuilder.layer(AccountsRoomApi).pipe(
  Layer.provide([
    AccountRoutes.layer,
    AdminRoutes.layer,
    KeysRoutes.layer,
    QuarantineRoutes.layer,
    SessionRoutes.layer,
    JobsRoutes.layer,
    SystemRoutes.layer
  ])
)

/** Answers to requests with an Idempotency-Key, in all rooms. */
const keptAnswers = Sweeps.layer({
  name: "kept-answers",
  every: "idempotencySweepMillis",
  run: Effect.flatMap(Idempotency, ({ sweep }) => sweep)
})

/** The middleware of all rooms that accounts provide. */
export const middleware = Layer.mergeAll(
  Admission.middlewareLayer,
  AccountRoutes.pagesForAdmins,
  SignIn.layer
)

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    readiness,
    Sweep.layer("files", "gone_at"),
    Sessions.sweeping,
    Sweeps.ofJobs,
    BlobSweeps.layer,
    keptAnswers
  ),
  raw: RawRoutes.addRaw(fileRoutes),
  paths: []
}
