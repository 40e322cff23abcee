import * as Headers from "effect/http/Headers"
import type { UwsRequest } from "./uws/Addon.ts"

/** The parts of a request that uWebSockets.js shows only during its handler, copied. */
export interface RequestHead {
  readonly headers: Headers.Headers
  /** undefined where there is none */
  readonly contentLength: number | undefined
  readonly isChunked: boolean
  /** the client has said that it wants no other answer on this connection (RFC 9112 9.6) */
  readonly isLast: boolean
  /**
   * Two parsers could read it differently (RFC 9112 3.2, 6.1, 6.3): two lengths, even equal ones; a length or a coding
   * that is empty; a coding other than one `chunked`; two hosts.
   */
  readonly isAmbiguous: boolean
}

/** uWebSockets.js takes any value for chunked. */
export const isChunkedAlone = (coding: string): boolean =>
  coding === "chunked" || coding.toLowerCase() === "chunked"

export const saysClose = (connection: string): boolean =>
  connection !== "keep-alive" && closeOption.test(connection)

const closeOption = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i

const prototype: object = Object.getPrototypeOf(Headers.empty)

/** Of these the first counts, as in Node; all others are lists. */
const single = new Set([
  "age",
  "authorization",
  "content-type",
  "etag",
  "expires",
  "from",
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

/** Recipients differ on which of two counts. */
const unrepeatable = new Set(["content-length", "transfer-encoding", "host"])

// One visitor for all requests: reading is synchronous, so that there is only ever one target.
let target: Record<string, string> = {}
let isAmbiguous = false

const visit = (name: string, value: string): void => {
  const present = target[name]
  if (present === undefined) target[name] = value
  else if (unrepeatable.has(name)) isAmbiguous = true
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
  const connection = headers["connection"]
  return {
    headers: headers as Headers.Headers,
    contentLength: length === undefined ? undefined : Number(length),
    isChunked: coding !== undefined,
    isLast: connection !== undefined && saysClose(connection),
    isAmbiguous: isAmbiguous || length === "" || (coding !== undefined && !isChunkedAlone(coding))
  }
}
