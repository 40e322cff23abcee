import { Context, Deferred, Effect, Layer, Option, Predicate } from "effect"
import { HttpServer, type HttpServerRequest } from "effect/http"
import { AppConfig, networksOf } from "./Config.ts"
import * as ClientAddress from "./front/ClientAddress.ts"
import type { RawRequest } from "./front/RawRoute.ts"

/** The URL of this server, without a trailing slash: `BASE_URL`, else the address that it listens on. */
export const serverUrl = Effect.gen(function* () {
  const { baseUrl, host } = yield* AppConfig
  const { address } = yield* HttpServer.HttpServer
  if (baseUrl !== undefined) return baseUrl
  const port = Predicate.hasProperty(address, "port") ? address.port : undefined
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host
  return `http://${name}:${String(port)}`
})

/** A host name, IPv4 or bracketed IPv6 address, with or without a port (RFC 9110, 7.2), and nothing that quotes. */
const authority = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

type Header = (name: string) => string | undefined

/** The origin that a proxy was asked for, from `Host` and `X-Forwarded-Proto`; undefined where they name neither host nor address. */
const askedFor = (header: Header): string | undefined => {
  const host = header("host") ?? ""
  // The last one comes from the nearest proxy; that proxy received those before it.
  const scheme = header("x-forwarded-proto")?.split(",").at(-1)?.trim().toLowerCase()
  return authority.test(host) ? `${scheme === "https" ? "https" : "http"}://${host}` : undefined
}

/**
 * As `serverUrl`, for one request: without `BASE_URL` the host that a trusted proxy reports counts. Other clients'
 * reports do not, since a cache on the way could keep the answer for others.
 */
export const serverUrlFor = Effect.gen(function* () {
  const { baseUrl, trustProxy } = yield* AppConfig
  const { isProxied } = ClientAddress.make(networksOf(trustProxy))
  const own = yield* serverUrl
  return (request: HttpServerRequest.HttpServerRequest): string => {
    if (baseUrl !== undefined) return baseUrl
    const peer = (): string => Option.getOrElse(request.peerAddress, () => "")
    return (isProxied(peer) ? askedFor((name) => request.headers[name]) : undefined) ?? own
  }
})

/** `serverUrlFor` of raw routes, which are made before the front listens: they wait for that, as their requests do. */
export class RawServerUrl extends Context.Service<
  RawServerUrl,
  {
    readonly urlFor: (request: RawRequest) => Effect.Effect<string>
    readonly own: Deferred.Deferred<string>
  }
>()("signalbox/RawServerUrl") {
  static readonly layer = Layer.effect(
    RawServerUrl,
    Effect.gen(function* () {
      const { baseUrl } = yield* AppConfig
      const own = yield* Deferred.make<string>()
      const forRequest = (request: RawRequest) => (url: string) =>
        (request.isProxied ? askedFor((name) => request.header(name)) : undefined) ?? url
      return RawServerUrl.of({
        own,
        urlFor: (request) =>
          baseUrl === undefined
            ? Effect.map(Deferred.await(own), forRequest(request))
            : Effect.succeed(baseUrl)
      })
    })
  )

  /** Once the front listens. */
  static readonly listening = Layer.effectDiscard(
    Effect.gen(function* () {
      const { own } = yield* RawServerUrl
      yield* Deferred.succeed(own, yield* serverUrl)
    })
  )
}

/**
 * The origins by which a browser may know this server, the public one first: that of `BASE_URL`, and the `Host` that the
 * request names, by the scheme that a trusted proxy reports. Unlike an address in an answer, one from a request is only
 * compared with what the same request says, so any `Host` will do.
 */
export const publicOrigins = (baseUrl: string | undefined) => {
  const own = baseUrl === undefined ? [] : [new URL(baseUrl).origin]
  return (request: { readonly isProxied: boolean; readonly header: Header }): ReadonlyArray<string> => {
    const asked = askedFor((name) =>
      name === "x-forwarded-proto" && !request.isProxied ? undefined : request.header(name)
    )
    return asked === undefined ? own : [...own, new URL(asked).origin]
  }
}
