import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#schemas/Api.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { Conflict, Forbidden, NotFound } from "#schemas/core/Problem.ts"
import { storeAway } from "#src/infra/http/StoreAway.ts"
import { userResource, Users } from "./Users.ts"

/** Fails unless the key's owner is an administrator. */
export const administrator = Effect.flatMap(CurrentKey, ({ role }) =>
  role === "admin" ? Effect.void : Effect.fail(new Forbidden({ error: "Only administrators may do this" }))
)

const problems = {
  UserNotFound: () => Effect.fail(new NotFound({ error: "User not found" })),
  EmailTaken: () => Effect.fail(new Conflict({ error: "email: already taken" })),
  LastAdministrator: () => Effect.fail(new Conflict({ error: "The last administrator stays one" }))
}

export const layer = HttpApiBuilder.group(
  Api,
  "admin",
  Effect.fnUntraced(function* (handlers) {
    const users = yield* Users
    return handlers.handleAll({
      createUser: ({ payload }) =>
        administrator.pipe(
          Effect.andThen(users.create(payload)),
          storeAway,
          Effect.map(userResource),
          Effect.catchTag("EmailTaken", problems.EmailTaken)
        ),
      getUser: ({ params }) =>
        administrator.pipe(
          Effect.andThen(users.find(params.id)),
          Effect.map(userResource),
          Effect.catchTag("UserNotFound", problems.UserNotFound)
        ),
      updateUser: ({ params, payload }) =>
        administrator.pipe(
          Effect.andThen(users.update(params.id, payload)),
          storeAway,
          Effect.map(userResource),
          Effect.catchTags(problems)
        ),
      deleteUser: ({ params }) =>
        administrator.pipe(
          Effect.andThen(users.remove(params.id)),
          storeAway,
          Effect.as({ deleted: true as const }),
          Effect.catchTags({
            UserNotFound: problems.UserNotFound,
            LastAdministrator: problems.LastAdministrator
          })
        )
    })
  })
)
