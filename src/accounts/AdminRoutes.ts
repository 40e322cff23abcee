import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { AdministratorsOnly, CurrentKey, OpenAiAdministratorsOnly } from "#schemas/core/Authorization.ts"
import { OpenAiForbidden } from "#schemas/core/OpenAiProblem.ts"
import { Conflict, Forbidden, NotFound } from "#schemas/core/Problem.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { FirstBoot } from "./FirstBoot.ts"
import { type LastAdministrator, userResource, Users } from "./Users.ts"

const text = "Only administrators may do this"

/** 403 for all but administrators, in both families. */
export const administratorsOnly = Layer.merge(
  Layer.succeed(AdministratorsOnly, (httpEffect) =>
    Effect.gen(function* () {
      const { role } = yield* CurrentKey
      if (role !== "admin") return yield* new Forbidden({ error: text })
      return yield* httpEffect
    })
  ),
  Layer.succeed(OpenAiAdministratorsOnly, (httpEffect) =>
    Effect.gen(function* () {
      const { role } = yield* CurrentKey
      if (role !== "admin") return yield* OpenAiForbidden.of(text)
      return yield* httpEffect
    })
  )
)

const problems = {
  UserNotFound: () => Effect.fail(new NotFound({ error: "User not found" })),
  EmailTaken: () => Effect.fail(new Conflict({ error: "email: already taken" })),
  LastAdministrator: ({ hasOthers }: LastAdministrator) =>
    Effect.fail(new Conflict({ error: `The last administrator${hasOthers ? " with a key" : ""} stays one` }))
}

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "admin",
  Effect.fnUntraced(function* (handlers) {
    const users = yield* Users
    const { forgetDeadKey } = yield* FirstBoot
    return handlers.handleAll({
      createUser: ({ payload }) =>
        users
          .create(payload)
          .pipe(storeAway, Effect.map(userResource), Effect.catchTag("EmailTaken", problems.EmailTaken)),
      getUser: ({ params }) =>
        users
          .find(params.id)
          .pipe(Effect.map(userResource), Effect.catchTag("UserNotFound", problems.UserNotFound)),
      updateUser: ({ params, payload }) =>
        users
          .update(params.id, payload)
          .pipe(storeAway, Effect.tap(forgetDeadKey), Effect.map(userResource), Effect.catchTags(problems)),
      deleteUser: ({ params }) =>
        users.remove(params.id).pipe(
          storeAway,
          Effect.tap(forgetDeadKey),
          Effect.as({ deleted: true as const }),
          Effect.catchTags({
            UserNotFound: problems.UserNotFound,
            LastAdministrator: problems.LastAdministrator
          })
        )
    })
  })
)
