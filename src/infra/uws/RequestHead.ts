import * as Headers from "effect/http/Headers"
import type { UwsRequest } from "./Addon.ts"

/** What uWebSockets.js shows of a request only during its handler, copied. */
export interface RequestHead {
  readonly headers: Headers.Headers
  /** undefined where there is none */
  readonly contentLength: number | undefined
  readonly isChunked: boolean
  /** the end of the body is a matter of opinion (RFC 9112 6.3): two lengths, or a coding other than chunked */
  readonly isAmbiguous: boolean
}

const prototype: object = Object.getPrototypeOf(Headers.empty)

/** Of these the first counts, as in Node; all others are lists. */
const single = new Set([
  "age",
  "authorization",
  "content-type",
  "etag",
  "expires",
  "from",
  "host",
  "if-modified-since",
  "if-unmodified-since",
  "last-modified",
  "location",
  "max-forwards",
  "proxy-authorization",
  "referer",
  "retry-after",
  "server",
  "user-agent"
])

// One visitor for all requests: reading is synchronous, so that there is only ever one target.
let target: Record<string, string> = {}
let isAmbiguous = false

const visit = (name: string, value: string): void => {
  const present = target[name]
  if (present === undefined) target[name] = value
  else if (name === "content-length") isAmbiguous ||= present !== value
  else if (name === "cookie") target[name] = `${present}; ${value}`
  else if (!single.has(name)) target[name] = `${present}, ${value}`
}

export const read = (request: UwsRequest): RequestHead => {
  const headers: Record<string, string> = Object.create(prototype)
  target = headers
  isAmbiguous = false
  request.forEach(visit)
  const length = headers["content-length"]
  const coding = headers["transfer-encoding"]
  return {
    headers: headers as Headers.Headers,
    contentLength: length === undefined ? undefined : Number(length),
    isChunked: coding !== undefined,
    isAmbiguous: isAmbiguous || (coding !== undefined && coding.toLowerCase() !== "chunked")
  }
}
