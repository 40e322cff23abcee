import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { keysLimitDefault } from "#schemas/accounts/ApiKey.ts"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { TooManyRows } from "#src/infra/postgres/Table.ts"
import { FirstBoot } from "./FirstBoot.ts"
import { type KeyFieldInvalid, Keys, reachOf } from "./Keys.ts"
import { Users } from "./Users.ts"
import { Conflict, Forbidden, NotFound, invalidField } from "#schemas/core/Problem.ts"

const problems = {
  RowNotFound: () => Effect.fail(NotFound.of("Key not found", { code: "key_not_found", param: "id" })),
  KeyFieldInvalid: ({ field, problem }: KeyFieldInvalid) => Effect.fail(invalidField(field, problem)),
  LastAdministratorKey: () =>
    Effect.fail(
      Conflict.of("The last key of the last administrator stays; make another one first", {
        code: "last_administrator_key"
      })
    )
}

const tooMany = ({ limit }: TooManyRows) =>
  Effect.fail(Conflict.of(`A user has at most ${limit} keys`, { code: "too_many_keys" }))

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
          return { object: "list" as const, data: listed.rows, meta: { ...page, total: listed.total } }
        }),
      createKey: ({ payload }) =>
        Effect.all([userOf(payload.user_id), CurrentKey]).pipe(
          Effect.flatMap(([userId, caller]) => keys.create(userId, payload, caller)),
          storeAway,
          Effect.map(({ row, secret }) => ({ ...row, key: secret })),
          Effect.catchTags({ KeyFieldInvalid: problems.KeyFieldInvalid, TooManyRows: tooMany })
        ),
      updateKey: ({ params, payload }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => keys.update(params.id, payload, caller)),
          storeAway,
          Effect.catchTags(problems)
        ),
      revokeKey: ({ params }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => keys.revoke(params.id, reachOf(caller))),
          storeAway,
          Effect.tap(forgetDeadKey),
          Effect.as({ id: params.id, deleted: true as const }),
          Effect.catchTags({
            RowNotFound: problems.RowNotFound,
            LastAdministratorKey: problems.LastAdministratorKey
          })
        )
    })
  })
)
