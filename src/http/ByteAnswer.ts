import { Effect, type Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ByteRange } from "./FileBytes.ts"
import { isNoneMatch, requestedRange } from "./ByteRanges.ts"

/** Bytes that can be read from anywhere, and their description. */
interface DescribedBytes {
  readonly sizeBytes: number
  readonly contentType: string
  /** strong, with its quotes */
  readonly etag: string
  readonly headers: Readonly<Record<string, string>>
}

/** The part of a request that decides on the answer. A header that is absent is "" or undefined. */
interface ByteRequest {
  readonly method: string
  readonly header: (name: "if-none-match" | "if-range" | "range") => string | undefined
}

/** The head of an answer; with `range` these bytes are its body, else `text` is. */
interface ByteAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly range?: ByteRange
  readonly text?: string
}

/**
 * The answer to a GET or HEAD: the whole, one range (206, or 416), or 304. Several ranges, and a range of another version
 * (`If-Range`), are answered with the whole. Source: RFC 9110, 13 and 14.
 */
export const byteAnswer = (
  { header, method }: ByteRequest,
  { contentType, etag, headers: own, sizeBytes }: DescribedBytes
): ByteAnswer => {
  const headers = { etag, "accept-ranges": "bytes", ...own }
  if (isNoneMatch(header("if-none-match"), etag)) return { status: 304, headers }
  const ifRange = header("if-range") ?? ""
  const isRangeMeant = method === "GET" && (ifRange === "" || ifRange === etag)
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
