import { Effect, type Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ByteRange } from "./FileBytes.ts"
import { isMatch, isNoneMatch, requestedRange } from "./ByteRanges.ts"

/** Bytes that can be read from anywhere, and their description. */
interface DescribedBytes {
  readonly sizeBytes: number
  readonly contentType: string
  /** strong, with its quotes */
  readonly etag: string
  /** where it is known, conditions may name it; whole seconds count */
  readonly lastModified?: Date
  readonly headers: Readonly<Record<string, string>>
}

/** Source: RFC 9110, 13.1. */
type Condition = "if-match" | "if-unmodified-since" | "if-none-match" | "if-modified-since" | "if-range"

/** The request headers that decide on the answer. */
export const decisive: ReadonlySet<string> = new Set<Condition | "range">([
  "if-match",
  "if-unmodified-since",
  "if-none-match",
  "if-modified-since",
  "if-range",
  "range"
])

/** The part of a request that decides on the answer. A header that is absent is "" or undefined. */
export interface ByteRequest {
  readonly method: string
  readonly header: (name: Condition | "range") => string | undefined
}

/** A request for the whole, in any case. */
export const askedPlainly: ByteRequest = { method: "GET", header: () => undefined }

/** The head of an answer; with `range` these bytes are its body, else `text` is. */
interface ByteAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly range?: ByteRange
  readonly text?: string
}

/** Whole seconds since 1970; NaN for what is no date of HTTP (RFC 9110, 5.6.7). */
const secondsOf = (header: string): number =>
  /^[A-Za-z]{3,9},? /.test(header) ? Math.floor(Date.parse(header) / 1_000) : Number.NaN

/** Whether the bytes are no newer than an instant that was sent; undefined where there is none to compare. */
const isUnmodified = (header: string | undefined, lastModified: Date | undefined): boolean | undefined => {
  const seconds = secondsOf(header ?? "")
  if (lastModified === undefined || Number.isNaN(seconds)) return undefined
  return Math.floor(lastModified.getTime() / 1_000) <= seconds
}

/** 412 or 304, where a condition calls for it, in the order of RFC 9110, 13.2.2. A header that is absent is "" or undefined. */
const conditionOf = (
  { header, method }: ByteRequest,
  { etag, lastModified }: DescribedBytes
): 304 | 412 | undefined => {
  const ifMatch = header("if-match") ?? ""
  if (
    ifMatch === ""
      ? isUnmodified(header("if-unmodified-since"), lastModified) === false
      : !isMatch(ifMatch, etag)
  )
    return 412
  const ifNoneMatch = header("if-none-match") ?? ""
  if (ifNoneMatch !== "") return isNoneMatch(ifNoneMatch, etag) ? 304 : undefined
  const isRead = method === "GET" || method === "HEAD"
  return isRead && isUnmodified(header("if-modified-since"), lastModified) === true ? 304 : undefined
}

/** A date is as good as an entity tag where it is that of the bytes, to the second. */
const isSame = (ifRange: string, { etag, lastModified }: DescribedBytes): boolean =>
  ifRange === etag ||
  (lastModified !== undefined && Math.floor(lastModified.getTime() / 1_000) === secondsOf(ifRange))

/**
 * The answer to a GET or HEAD: the whole, one range (206, or 416), 304, or 412. Several ranges, and a range of another
 * version (`If-Range`), are answered with the whole. Source: RFC 9110, 13 and 14.
 */
export const byteAnswer = (request: ByteRequest, bytes: DescribedBytes): ByteAnswer => {
  const { header, method } = request
  const { contentType, etag, lastModified, sizeBytes } = bytes
  const own =
    lastModified === undefined
      ? bytes.headers
      : { "last-modified": lastModified.toUTCString(), ...bytes.headers }
  const headers = { etag, "accept-ranges": "bytes", ...own }
  const condition = conditionOf(request, bytes)
  if (condition === 304) return { status: 304, headers }
  if (condition === 412) {
    const text = JSON.stringify({ error: "If-Match, If-Unmodified-Since: the file has changed" })
    return { status: 412, headers: { etag, "content-type": "application/json" }, text }
  }
  const ifRange = header("if-range") ?? ""
  const isRangeMeant = method === "GET" && (ifRange === "" || isSame(ifRange, bytes))
  const wish = requestedRange(isRangeMeant ? header("range") : undefined, sizeBytes)
  switch (wish._tag) {
    case "Unsatisfiable":
      return {
        status: 416,
        headers: {
          etag,
          "accept-ranges": "bytes",
          "content-range": `bytes */${sizeBytes}`,
          "content-type": "application/json"
        },
        text: JSON.stringify({ error: `Range: the file has ${sizeBytes} bytes` })
      }
    case "Whole":
      return {
        status: 200,
        headers: { ...headers, "content-type": contentType },
        range: { from: 0, to: sizeBytes }
      }
    case "Part": {
      const { range } = wish
      const part = `bytes ${range.from}-${range.to - 1}/${sizeBytes}`
      return {
        status: 206,
        headers: { ...headers, "content-range": part, "content-type": contentType },
        range
      }
    }
  }
}

/** The same for an ordinary endpoint. */
export const answerBytes = <E, R>(
  request: HttpServerRequest.HttpServerRequest,
  bytes: DescribedBytes,
  read: (range: ByteRange) => Effect.Effect<Stream.Stream<Uint8Array>, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> => {
  const { method } = request
  const { headers, range, status, text } = byteAnswer(
    { method, header: (name) => request.headers[name] },
    bytes
  )
  if (range === undefined) {
    return Effect.succeed(
      text === undefined
        ? HttpServerResponse.empty({ status, headers })
        : HttpServerResponse.text(text, { status, headers, contentType: "application/json" })
    )
  }
  return Effect.map(read(range), (stream) =>
    HttpServerResponse.stream(stream, {
      status,
      headers,
      contentType: bytes.contentType,
      contentLength: range.to - range.from
    })
  )
}
