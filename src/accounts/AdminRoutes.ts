import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { FirstBoot } from "./FirstBoot.ts"
import { Sessions } from "./sessions/Sessions.ts"
import type { UserRow } from "#schemas/accounts/User.ts"
import { Users } from "./Users.ts"

/** A user as administrators see them. */
const managed = ({ storage_quota_bytes, ...user }: UserRow) => ({
  ...user,
  ...(storage_quota_bytes !== null && { storage_quota_bytes })
})

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "admin",
  Effect.fnUntraced(function* (handlers) {
    const users = yield* Users
    const sessions = yield* Sessions
    const urlFor = yield* serverUrlFor
    const { forgetDeadKey } = yield* FirstBoot
    return handlers.handleAll({
      createUser: ({ payload }) => storeAway(users.create(payload)),
      getUser: ({ params }) => Effect.map(users.find(params.id), managed),
      updateUser: ({ params, payload }) =>
        users.update(params.id, payload).pipe(storeAway, Effect.tap(forgetDeadKey), Effect.map(managed)),
      deleteUser: ({ params }) =>
        users
          .remove(params.id)
          .pipe(storeAway, Effect.tap(forgetDeadKey), Effect.as({ deleted: true as const })),
      createLoginLink: ({ params, request }) =>
        Effect.gen(function* () {
          const { id } = yield* users.find(params.id)
          const { endsAt, ticket } = yield* storeAway(sessions.makeTicket(id))
          yield* Effect.logInfo("A login link was made").pipe(Effect.annotateLogs({ for: id }))
          return { url: `${urlFor(request)}/login#${ticket}`, expiresAt: endsAt }
        })
    })
  })
)
