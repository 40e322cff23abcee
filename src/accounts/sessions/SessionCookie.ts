import { Effect, Option } from "effect"
import { Cookies, HttpEffect, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { AppConfig, networksOf } from "#src/Config.ts"
import * as ClientAddress from "#src/front/ClientAddress.ts"
import { publicOrigins } from "#src/ServerUrl.ts"

/**
 * The cookie of a session, and the rules by which a browser's request may use it, for ordinary and raw routes alike.
 * Source: contract/sessions#cookie.
 */

/** The parts of a request that its browser tells; a raw route's request is one. */
export interface BrowserRequest {
  readonly method: string
  /** a trusted proxy handed it over */
  readonly isProxied: boolean
  /** `cookie`, `sec-fetch-site`, `origin`, `host`, `x-forwarded-proto`; "" when absent */
  readonly header: (name: string) => string
}

/** Browsers take the prefix from https alone, for this host and all paths: no neighbouring host can set it. */
const secureName = "__Host-signalbox"
const plainName = "signalbox"

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"])

export interface SessionCookie {
  /** the value of the cookie; undefined where there is none */
  readonly valueIn: (request: BrowserRequest) => string | undefined
  /** Whether a page of another origin asks for a change. A request that names no page comes from no browser. */
  readonly isForeign: (request: BrowserRequest) => boolean
  /** the answer that is made sets the cookie */
  readonly set: (
    request: BrowserRequest,
    secret: string,
    endsAt: Date
  ) => Effect.Effect<void, never, HttpServerRequest.HttpServerRequest>
  /** the answer that is made clears the cookie, where there is one */
  readonly clear: (request: BrowserRequest) => Effect.Effect<void, never, HttpServerRequest.HttpServerRequest>
  /** `Set-Cookie` of a raw route's answer that clears the cookie; undefined where there is none */
  readonly clearing: (request: BrowserRequest) => string | undefined
}

type Options = NonNullable<Cookies.Cookie["options"]>

const past = new Date(0)

export const makeSessionCookie = Effect.map(AppConfig, ({ baseUrl }): SessionCookie => {
  const originsOf = publicOrigins(baseUrl)
  const isSecure = (request: BrowserRequest) => originsOf(request)[0]?.startsWith("https:") === true
  const nameFor = (request: BrowserRequest) => (isSecure(request) ? secureName : plainName)
  const valueIn: SessionCookie["valueIn"] = (request) => {
    const value = Cookies.parseHeader(request.header("cookie"))[nameFor(request)]
    return value === "" ? undefined : value
  }
  const optionsFor = (request: BrowserRequest, expires: Date): Options => ({
    httpOnly: true,
    secure: isSecure(request),
    sameSite: "lax",
    path: "/",
    expires
  })
  const answerWith = (request: BrowserRequest, value: string, expires: Date) =>
    HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(
        HttpServerResponse.setCookieUnsafe(response, nameFor(request), value, optionsFor(request, expires))
      )
    )
  return {
    valueIn,
    isForeign: (request) => {
      if (safeMethods.has(request.method)) return false
      const site = request.header("sec-fetch-site")
      if (site !== "") return site !== "same-origin"
      const origin = request.header("origin")
      return origin !== "" && !originsOf(request).includes(origin)
    },
    set: answerWith,
    clear: (request) => (valueIn(request) === undefined ? Effect.void : answerWith(request, "", past)),
    clearing: (request) =>
      valueIn(request) === undefined
        ? undefined
        : Cookies.serializeCookie(Cookies.makeCookieUnsafe(nameFor(request), "", optionsFor(request, past)))
  }
})

/** An ordinary request as its browser tells it. */
export const makeBrowserRequest = Effect.map(AppConfig, ({ trustProxy }) => {
  const { isProxied } = ClientAddress.make(networksOf(trustProxy))
  return (request: HttpServerRequest.HttpServerRequest): BrowserRequest => ({
    method: request.method,
    get isProxied() {
      return isProxied(() => Option.getOrElse(request.peerAddress, () => ""))
    },
    header: (name) => request.headers[name] ?? ""
  })
})
