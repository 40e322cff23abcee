import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { FirstBoot } from "./FirstBoot.ts"
import { type LastAdministrator, Users } from "./Users.ts"
import { Conflict, NotFound } from "#schemas/core/Problem.ts"

const problems = {
  RowNotFound: () => Effect.fail(NotFound.of("User not found")),
  EmailTaken: () => Effect.fail(Conflict.of("email: already taken")),
  LastAdministrator: ({ hasOthers }: LastAdministrator) =>
    Effect.fail(Conflict.of(`The last administrator${hasOthers ? " with a key" : ""} stays one`))
}

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "admin",
  Effect.fnUntraced(function* (handlers) {
    const users = yield* Users
    const { forgetDeadKey } = yield* FirstBoot
    return handlers.handleAll({
      createUser: ({ payload }) =>
        users.create(payload).pipe(storeAway, Effect.catchTag("EmailTaken", problems.EmailTaken)),
      getUser: ({ params }) =>
        users.find(params.id).pipe(Effect.catchTag("RowNotFound", problems.RowNotFound)),
      updateUser: ({ params, payload }) =>
        users
          .update(params.id, payload)
          .pipe(storeAway, Effect.tap(forgetDeadKey), Effect.catchTags(problems)),
      deleteUser: ({ params }) =>
        users.remove(params.id).pipe(
          storeAway,
          Effect.tap(forgetDeadKey),
          Effect.as({ deleted: true as const }),
          Effect.catchTags({
            RowNotFound: problems.RowNotFound,
            LastAdministrator: problems.LastAdministrator
          })
        )
    })
  })
)
