import { Effect, Layer } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey, type Metering } from "#schemas/core/Authorization.ts"
import { BeginsLogin, SessionsOnly } from "#schemas/files/CliLogin.ts"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { Admission, invalidKey } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { CliLogins } from "./CliLogins.ts"
import { loginPath } from "./LoginPage.ts"

/** Answers that have a token or a key in them are for the one who asked. */
const unstored = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "cache-control", "no-store"))
)

const perMinute = (name: string, limit: number): Metering => ({
  meter: { name, shape: "bucket", per: "address", limit, seconds: 60 },
  cost: 1
})

export const layer = HttpApiBuilder.group(
  FilesRoomApi,
  "cliLogin",
  Effect.fnUntraced(function* (handlers) {
    const admission = yield* Admission
    const logins = yield* CliLogins
    const urlFor = yield* serverUrlFor
    const { limits } = yield* AppConfig
    const polls = perMinute("Polls of command lines", limits.cliLoginPollsPerMinute)
    return handlers.handleAll({
      beginCliLogin: ({ payload, request }) =>
        Effect.gen(function* () {
          yield* unstored
          const { digits, token } = yield* storeAway(logins.begin(payload))
          const url = `${urlFor(request)}${loginPath}#${token}`
          return { token, url, expiresIn: limits.cliLoginMillis / 1_000, digits }
        }),
      pollCliLogin: ({ query: { token }, request }) =>
        Effect.gen(function* () {
          yield* admission.enterWithoutKey(request, polls)
          yield* unstored
          // Of an answer to HEAD the key would be lost.
          if (request.method === "HEAD") return { status: yield* storeAway(logins.peek(token)) }
          return yield* storeAway(logins.poll(token))
        }),
      readCliLogin: ({ payload: { token } }) =>
        CurrentKey.pipe(
          Effect.flatMap((session) => logins.read(token, session)),
          storeAway,
          Effect.tap(unstored)
        ),
      completeCliLogin: ({ payload: { scopes, token } }) =>
        CurrentKey.pipe(
          Effect.flatMap((session) => logins.complete(token, session, scopes)),
          storeAway,
          Effect.as({ success: true as const })
        )
    })
  })
)

type Request = HttpServerRequest.HttpServerRequest

const isEmpty = ({ headers }: Request): boolean =>
  headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) === 0

/** The request with an empty object, whatever type was given to no body at all. */
const withoutFields = (request: Request): Request => {
  const { "content-type": _, "content-length": __, ...headers } = request.headers
  const { buffer } = new TextEncoder().encode("{}")
  return Object.create(request, {
    headers: { value: headers },
    arrayBuffer: { value: Effect.succeed(buffer) }
  })
}

/** The middleware of those who let command lines in. */
export const sessionsOnly = Layer.succeed(SessionsOnly, (httpEffect) =>
  Effect.andThen(
    Effect.filterOrFail(CurrentKey, ({ kind }) => kind === "session", invalidKey),
    httpEffect
  )
)

/** The middleware of `POST /api/cli/auth/init`. */
export const begins = Layer.effect(
  BeginsLogin,
  Effect.gen(function* () {
    const admission = yield* Admission
    const { limits } = yield* AppConfig
    const logins = perMinute("Logins of command lines", limits.cliLoginsPerMinute)
    return (httpEffect) =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        yield* admission.enterWithoutKey(request, logins)
        return yield* isEmpty(request)
          ? Effect.provideService(httpEffect, HttpServerRequest.HttpServerRequest, withoutFields(request))
          : httpEffect
      })
  })
)
