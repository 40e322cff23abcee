import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { FirstBoot } from "./FirstBoot.ts"
import { Users } from "./Users.ts"

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "admin",
  Effect.fnUntraced(function* (handlers) {
    const users = yield* Users
    const { forgetDeadKey } = yield* FirstBoot
    return handlers.handleAll({
      createUser: ({ payload }) => storeAway(users.create(payload)),
      getUser: ({ params }) => users.find(params.id),
      updateUser: ({ params, payload }) =>
        users.update(params.id, payload).pipe(storeAway, Effect.tap(forgetDeadKey)),
      deleteUser: ({ params }) =>
        users
          .remove(params.id)
          .pipe(storeAway, Effect.tap(forgetDeadKey), Effect.as({ deleted: true as const }))
    })
  })
)
