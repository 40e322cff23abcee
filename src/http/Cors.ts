import { HttpServerResponse, type HttpServerRequest } from "effect/http"
import { exposedHeaders } from "#src/front/HotCors.ts"

/**
 * CORS of the ordinary endpoints: only the origins of CORS_ORIGINS, and no credentials, since keys travel in a header.
 * An answer that is already open (`/a.js`, `/scripts/*`) stays so; `/api/event` is a hot route and has the front's.
 * Source: contract/http#cors.
 */
export interface Cors {
  /** the answer to a preflight of an allowed origin; undefined: not a preflight, or not allowed */
  preflight(request: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse | undefined
  answer(
    request: HttpServerRequest.HttpServerRequest,
    response: HttpServerResponse.HttpServerResponse
  ): HttpServerResponse.HttpServerResponse
}

const allowOrigin = "access-control-allow-origin"

/** How long a browser may keep a preflight's answer. */
const preflightSeconds = 600

export const make = (origins: ReadonlyArray<string>): Cors => {
  const allowed = new Set(origins)
  const originOf = (request: HttpServerRequest.HttpServerRequest): string | undefined => {
    const origin = request.headers["origin"]
    return origin !== undefined && (allowed.has(origin) || allowed.has("*")) ? origin : undefined
  }
  return {
    preflight(request) {
      const origin = originOf(request)
      const method = request.headers["access-control-request-method"]
      if (request.method !== "OPTIONS" || origin === undefined || method === undefined) return undefined
      return HttpServerResponse.empty({
        status: 204,
        headers: {
          "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
          "access-control-allow-headers":
            "Authorization, Content-Type, Idempotency-Key, If-None-Match, Range, X-Request-Id",
          "access-control-max-age": String(preflightSeconds)
        }
      })
    },
    answer(request, response) {
      if (allowed.size === 0 || response.headers[allowOrigin] === "*") return response
      // Even a refusal varies: a cache must not hand one origin's answer to another.
      const { vary } = response.headers
      const varied = HttpServerResponse.setHeader(
        response,
        "vary",
        vary === undefined ? "Origin" : `${vary}, Origin`
      )
      const origin = originOf(request)
      if (origin === undefined) return varied
      return HttpServerResponse.setHeaders(varied, {
        [allowOrigin]: origin,
        "access-control-expose-headers": exposedHeaders
      })
    }
  }
}
