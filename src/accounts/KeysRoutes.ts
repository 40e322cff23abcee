import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ApiKey } from "#schemas/accounts/ApiKey.ts"
import { keysLimitDefault } from "#schemas/accounts/KeysApi.ts"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { CurrentKey, type Principal } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { FirstBoot } from "./FirstBoot.ts"
import type { KeyRow } from "./KeyDirectory.ts"
import { type KeyFieldInvalid, Keys, type TooManyKeys } from "./Keys.ts"
import { Users } from "./Users.ts"
import { Conflict, Forbidden, NotFound, invalidField } from "#schemas/core/Problem.ts"

const keyResource = (row: KeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  prefix: row.prefix,
  user_id: row.userId,
  models: row.models,
  collections: row.collections,
  expires_at: row.expiresAt?.toISOString() ?? null,
  spend_limit_usd: row.spendLimitUsd,
  rate_limit_per_minute: row.rateLimitPerMinute,
  created_at: row.createdAt.toISOString()
})

const problems = {
  KeyNotFound: () => Effect.fail(NotFound.of("Key not found", { code: "key_not_found", param: "id" })),
  KeyFieldInvalid: ({ field, problem }: KeyFieldInvalid) => Effect.fail(invalidField(field, problem)),
  LastAdministratorKey: () =>
    Effect.fail(
      Conflict.of("The last key of the last administrator stays; make another one first", {
        code: "last_administrator_key"
      })
    )
}

const tooMany = ({ limit }: TooManyKeys) =>
  Effect.fail(Conflict.of(`A user has at most ${limit} keys`, { code: "too_many_keys" }))

/** Administrators reach all users' keys. */
const reachOf = (key: Principal): string | undefined => (key.role === "admin" ? undefined : key.userId)

/** The user whose keys are meant: the caller, or for an administrator any user. */
const whoseIn = (users: Users["Service"]) => (userId: string | undefined) =>
  Effect.gen(function* () {
    const caller = yield* CurrentKey
    if (userId === undefined || userId === caller.userId) return caller.userId
    if (caller.role !== "admin") {
      return yield* Forbidden.of("user_id: only administrators reach the keys of others")
    }
    yield* Effect.mapError(users.find(userId), () =>
      NotFound.of("user_id: no such user", { code: "user_not_found", param: "user_id" })
    )
    return userId
  })

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "keys",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* Keys
    const users = yield* Users
    const { forgetDeadKey } = yield* FirstBoot

    const userOf = whoseIn(users)
    return handlers.handleAll({
      listKeys: ({ query }) =>
        Effect.gen(function* () {
          const page = pageOf(query, keysLimitDefault)
          const listed = yield* storeAway(keys.list(yield* userOf(query.user_id), page))
          return {
            object: "list" as const,
            data: listed.keys.map(keyResource),
            meta: { ...page, total: listed.total }
          }
        }),
      createKey: ({ payload }) =>
        Effect.all([userOf(payload.user_id), CurrentKey]).pipe(
          Effect.flatMap(([userId, caller]) => keys.create(userId, payload, caller)),
          storeAway,
          Effect.map(({ row, secret }) => ({ ...keyResource(row), key: secret })),
          Effect.catchTags({ KeyFieldInvalid: problems.KeyFieldInvalid, TooManyKeys: tooMany })
        ),
      updateKey: ({ params, payload }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => keys.update(params.id, payload, caller)),
          storeAway,
          Effect.map(keyResource),
          Effect.catchTags(problems)
        ),
      revokeKey: ({ params }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => keys.revoke(params.id, reachOf(caller))),
          storeAway,
          Effect.tap(forgetDeadKey),
          Effect.as({ id: params.id, deleted: true as const }),
          Effect.catchTags({
            KeyNotFound: problems.KeyNotFound,
            LastAdministratorKey: problems.LastAdministratorKey
          })
        )
    })
  })
)
