import type { HotRoute } from "./HotRoute.ts"

type Headers = ReadonlyArray<readonly [string, string]>

/** CORS of the hot routes (Fetch standard, "CORS protocol"). Ordinary routes have a middleware of their own. */
export interface HotCors {
  /** the headers that a route adds to every answer */
  answer(cors: HotRoute["cors"], origin: string): Headers
  /** the answer to OPTIONS, a 204 */
  preflight(cors: HotRoute["cors"], origin: string, requestedHeaders: string, allow: string): Headers
}

/** Headers that scripts of other origins may read: of answers of the API, hot or ordinary. */
export const exposedHeaders =
  "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Content-Disposition, ETag"

const none: Headers = []
const open: Headers = [["Access-Control-Allow-Origin", "*"]]
const exposed: Headers = [["Access-Control-Expose-Headers", exposedHeaders]]
/** An answer that depends on the origin must not be cached for another one. */
const vary: Headers = [["Vary", "Origin"]]

const anyExposed: Headers = [...open, ...exposed]

/** one day; browsers cap it lower */
const preflightMaxAgeSeconds = "86400"

export const make = (origins: ReadonlyArray<string>): HotCors => {
  const isAny = origins.includes("*")
  const allowed = new Set(origins)
  const answer: HotCors["answer"] = (cors, origin) => {
    if (cors === "open") return open
    if (isAny) return anyExposed
    if (allowed.size === 0) return none
    return allowed.has(origin) ? [["Access-Control-Allow-Origin", origin], ...vary, ...exposed] : vary
  }
  return {
    answer,
    preflight: (cors, origin, requestedHeaders, allow) => {
      const headers = answer(cors, origin)
      const refused = headers === none || headers === vary
      if (refused) return [["Allow", allow], ...headers]
      return [
        ["Allow", allow],
        ...headers,
        ["Access-Control-Allow-Methods", allow],
        ["Access-Control-Allow-Headers", tokens.test(requestedHeaders) ? requestedHeaders : "Content-Type"],
        ["Access-Control-Max-Age", preflightMaxAgeSeconds]
      ]
    }
  }
}

/** Echoed only as a list of header names, so that nothing else can be reflected into the answer. */
const tokens = /^[\w!#$%&'*+.^`|~-]+(?:\s*,\s*[\w!#$%&'*+.^`|~-]+)*$/
