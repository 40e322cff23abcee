import { Effect, Layer, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { join } from "node:path"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import * as AccountRoutes from "#src/accounts/AccountRoutes.ts"
import * as AdminRoutes from "#src/accounts/AdminRoutes.ts"
import { AnonymousRates } from "#src/accounts/AnonymousRates.ts"
import * as Authentication from "#src/accounts/Authentication.ts"
import { Files } from "#src/accounts/Files.ts"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { KeyDirectory } from "#src/accounts/KeyDirectory.ts"
import { Keys } from "#src/accounts/Keys.ts"
import * as KeysRoutes from "#src/accounts/KeysRoutes.ts"
import * as RateLimiting from "#src/accounts/RateLimiting.ts"
import { RequestCounts } from "#src/accounts/RequestCounts.ts"
import { UserDirectory } from "#src/accounts/UserDirectory.ts"
import { Users } from "#src/accounts/Users.ts"
import { Blobs } from "#src/infra/blobs/Blobs.ts"
import * as Redis from "#src/infra/redis/Redis.ts"
import * as RedisTokenLease from "#src/infra/redis/RedisTokenLease.ts"
import { AccountsRoomApi } from "#schemas/Api.ts"
import { KeyGate } from "#src/accounts/KeyGate.ts"
import { KeyWatch } from "#src/accounts/KeyWatch.ts"
import { AppConfig } from "#src/Config.ts"
import * as QuarantineRoutes from "#src/system/QuarantineRoutes.ts"
import { Quarantines } from "#src/system/Quarantines.ts"
import * as ReadinessChecks from "#src/system/ReadinessChecks.ts"
import * as SystemRoutes from "#src/system/SystemRoutes.ts"

const rateBuckets = Layer.unwrap(
  Effect.map(AppConfig, ({ limits, redisUrl }) => {
    const options = {
      rateBurst: limits.rateBurst,
      idleMillis: limits.rateBucketIdleMillis,
      leaseTokens: limits.rateLeaseTokens
    }
    if (redisUrl === undefined) return RateBuckets.layer(options)
    return RateBuckets.layerShared(options).pipe(
      Layer.provide(RedisTokenLease.layer),
      Layer.provide(Redis.layer({ url: Redacted.make(Redacted.value(redisUrl)) }))
    )
  })
)

const rates = AnonymousRates.layer.pipe(Layer.provideMerge(rateBuckets))

const blobs = Layer.unwrap(
  Effect.map(AppConfig, ({ dataDir }) => Blobs.layer({ directory: join(dataDir, "files") }))
)

/**
 * Users, keys and files, over Postgres and the disk: what every other room rests on. The first boot comes before the
 * directories read the tables.
 */
export const services = Layer.merge(KeyGate.layer, KeyWatch.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Keys.layer, Users.layer, RequestCounts.layer, Files.layer, rates)),
  Layer.provideMerge(Layer.merge(KeyDirectory.layer, UserDirectory.layer)),
  Layer.provide(blobs),
  Layer.provideMerge(FirstBoot.layer)
)

export const api = AccountsRoomApi

export const routes = HttpApiBuilder.layer(AccountsRoomApi).pipe(
  Layer.provide([
    AccountRoutes.layer,
    AdminRoutes.layer,
    KeysRoutes.layer,
    QuarantineRoutes.layer,
    SystemRoutes.layer
  ])
)

export const checks = Layer.merge(
  ReadinessChecks.accounts,
  Quarantines.entry(
    "activity",
    Effect.map(RequestCounts, ({ quarantine }) => quarantine)
  )
)

/** What the endpoints of all rooms pass. */
export const middleware = Layer.mergeAll(
  Authentication.layer,
  RateLimiting.layer,
  AccountRoutes.pagesForAdmins,
  AdminRoutes.administratorsOnly
)
