import { Effect } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { CurrentKey, type Principal } from "#schemas/core/Authorization.ts"
import { Forbidden, Unauthorized } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Credentials } from "../Credentials.ts"
import { Users } from "../Users.ts"
import { makeBrowserRequest, makeSessionCookie } from "./SessionCookie.ts"
import { Sessions } from "./Sessions.ts"
import { makeSignIn } from "./SignIn.ts"

/** Answers that name a session, or have a token in them, are for the one who asked. */
const unstored = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "cache-control", "no-store"))
)

const noSession = () => Unauthorized.of("There is no session; sign in by POST /api/session")

const ownSession = Effect.filterOrFail(CurrentKey, ({ kind }) => kind === "session", noSession)

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "session",
  Effect.fnUntraced(function* (handlers) {
    const credentials = yield* Credentials
    const sessions = yield* Sessions
    const users = yield* Users
    const { limits } = yield* AppConfig
    const cookie = yield* makeSessionCookie
    const browserRequest = yield* makeBrowserRequest
    const signIn = yield* makeSignIn

    const shown = Effect.fnUntraced(function* ({ expiresAt, ownerId, scopes }: Principal) {
      yield* unstored
      const { email, id, name, role } = yield* Effect.mapError(users.find(ownerId), noSession)
      // A session always has an end.
      if (expiresAt === null) return yield* Effect.die(new Error("a session without an end"))
      return { user: { id, email, name, role }, scopes, expiresAt }
    })

    return handlers.handleAll({
      createSession: ({ payload }) => Effect.flatMap(signIn(payload.ticket), shown),
      readSession: () => Effect.flatMap(ownSession, shown),
      deleteSession: ({ query }) =>
        Effect.gen(function* () {
          const { id, ownerId } = yield* ownSession
          yield* storeAway(query.everywhere === "true" ? sessions.endAllOf(ownerId) : sessions.end(id))
          yield* cookie.clear(browserRequest(yield* HttpServerRequest.HttpServerRequest))
          return { deleted: true as const }
        }),
      createSessionToken: () =>
        Effect.gen(function* () {
          yield* unstored
          const session = yield* ownSession
          const { headers } = yield* HttpServerRequest.HttpServerRequest
          if (headers["authorization"] !== undefined)
            return yield* Forbidden.of("A token makes no other; the cookie of the session does")
          return yield* credentials.tokenOf(session, limits.sessionTokenMillis)
        })
    })
  })
)
