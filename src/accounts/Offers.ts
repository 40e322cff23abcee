import { Effect, Layer, Redacted } from "effect"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import { AppConfig } from "#src/Config.ts"
import * as Redis from "#src/infra/redis/Redis.ts"
import * as RedisTokenLease from "#src/infra/redis/RedisTokenLease.ts"
import { Admission } from "./Admission.ts"
import { Credentials } from "./Credentials.ts"
import { Files } from "./Files.ts"
import { FirstBoot } from "./FirstBoot.ts"
import { KeyDirectory, Keys } from "./Keys.ts"
import { KeyWatch } from "./KeyWatch.ts"
import { RequestCounts } from "./RequestCounts.ts"
import { SessionDirectory, Sessions } from "./sessions/Sessions.ts"
import { SessionUses } from "./sessions/SessionUses.ts"
import { StorageQuotas } from "./StorageQuotas.ts"
import { UserDirectory, Users } from "./Users.ts"

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

/**
 * Users, keys, sessions and files, over Postgres and the disk: the base of every other room. The first boot comes before the
 * directories read the tables.
 */
export const offers = Layer.merge(Admission.layer, KeyWatch.layer).pipe(
  Layer.provideMerge(Credentials.layer),
  Layer.provide(SessionUses.layer),
  Layer.provideMerge(
    Layer.mergeAll(Keys.layer, Users.layer, Sessions.layer, RequestCounts.layer, Files.layer, rateBuckets)
  ),
  Layer.provideMerge(StorageQuotas.layer),
  Layer.provideMerge(Layer.mergeAll(KeyDirectory.layer, UserDirectory.layer, SessionDirectory.layer)),
  Layer.provideMerge(FirstBoot.layer)
)
