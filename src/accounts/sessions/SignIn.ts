import { Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { SignIn } from "#schemas/accounts/SessionApi.ts"
import type { Metering } from "#schemas/core/Authorization.ts"
import { Forbidden, Unauthorized } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway, storeAwayAbandoned } from "#src/http/StoreAway.ts"
import { Admission, anyKey, foreignPage, invalidKey } from "../Admission.ts"
import { Credentials } from "../Credentials.ts"
import { makeBrowserRequest, makeSessionCookie } from "./SessionCookie.ts"
import { Sessions } from "./Sessions.ts"

const badTicket = () => Unauthorized.of("The login link was used, has expired or never was one")

/** Opens a session by the request's key, else by a ticket; answers its principal. Source: contract/sessions#signing-in. */
export const makeSignIn = Effect.gen(function* () {
  const admission = yield* Admission
  const credentials = yield* Credentials
  const sessions = yield* Sessions
  const cookie = yield* makeSessionCookie
  const browserRequest = yield* makeBrowserRequest

  /** A key that is in an app opens none, nor does another session, which would outlive itself. */
  const byKey = Effect.fnUntraced(function* (
    authorization: string,
    request: HttpServerRequest.HttpServerRequest
  ) {
    const access = { ...anyKey, routerKeys: false, scope: "any" } as const
    const { key, refusal } = yield* admission.enter(authorization, access, request)
    const problem =
      refusal ?? (key.kind === "session" ? Forbidden.of("A session opens no other; use a key") : undefined)
    admission.record(key, problem?.status ?? 201)
    return problem === undefined
      ? yield* storeAwayAbandoned(sessions.openByKey(key.ownerId, key.keyId))
      : yield* problem
  })

  return Effect.fnUntraced(function* (ticket: string | undefined) {
    const request = yield* HttpServerRequest.HttpServerRequest
    const browser = browserRequest(request)
    const authorization = request.headers["authorization"] ?? ""
    const opened =
      authorization !== "" || ticket === undefined
        ? yield* byKey(authorization, request)
        : yield* storeAwayAbandoned(sessions.openByTicket(ticket))
    if (opened === undefined) return yield* badTicket()
    const former = cookie.valueIn(browser) ?? ""
    const holder = yield* storeAway(credentials.authenticateCookie(former))
    // The browser forgets its former cookie with this answer.
    if (holder !== undefined) yield* storeAway(sessions.end(holder.id))
    yield* cookie.set(browser, opened.secret, opened.row.ends_at)
    const session = yield* storeAway(credentials.authenticateCookie(opened.secret))
    // The key or the user went in between.
    return session ?? (yield* invalidKey())
  })
})

/** The middleware of signing in. */
export const layer = Layer.effect(
  SignIn,
  Effect.gen(function* () {
    const admission = yield* Admission
    const cookie = yield* makeSessionCookie
    const browserRequest = yield* makeBrowserRequest
    const { limits } = yield* AppConfig
    const attempts: Metering = {
      meter: {
        name: "Sign-ins",
        shape: "bucket",
        per: "address",
        limit: limits.signInsPerMinute,
        seconds: 60
      },
      cost: 1
    }
    return (httpEffect) =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        if (cookie.isForeign(browserRequest(request))) return yield* foreignPage()
        yield* admission.enterWithoutKey(request, attempts)
        const text = Effect.map(request.text, (body) => (body === "" ? "{}" : body))
        return yield* Effect.provideService(
          httpEffect,
          HttpServerRequest.HttpServerRequest,
          Object.create(request, { text: { value: text } })
        )
      })
  })
)
