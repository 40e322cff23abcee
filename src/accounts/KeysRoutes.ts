import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { keysLimitDefault } from "#schemas/accounts/ApiKey.ts"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { FirstBoot } from "./FirstBoot.ts"
import { Keys } from "./Keys.ts"
import { reachOf, Users } from "./Users.ts"

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "keys",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* Keys
    const users = yield* Users
    const { forgetDeadKey } = yield* FirstBoot

    const userOf = (userId: string | undefined) =>
      Effect.flatMap(CurrentKey, (caller) => users.meant(caller, userId, "reach the keys of others"))
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
          Effect.map(({ row, secret }) => ({ ...row, key: secret }))
        ),
      updateKey: ({ params, payload }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => keys.update(params.id, payload, caller)),
          storeAway
        ),
      revokeKey: ({ params }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => keys.revoke(params.id, reachOf(caller))),
          storeAway,
          Effect.tap(forgetDeadKey),
          Effect.as({ id: params.id, deleted: true as const })
        )
    })
  })
)
