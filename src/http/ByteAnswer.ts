import { Effect, type Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ByteRange } from "#src/infra/blobs/FileBytes.ts"
import { isNoneMatch, requestedRange } from "./ByteRanges.ts"

/** Bytes that can be read from anywhere, and their description. */
interface ServedBytes<E, R> {
  readonly sizeBytes: number
  readonly contentType: string
  /** strong, with its quotes */
  readonly etag: string
  readonly headers: Readonly<Record<string, string>>
  readonly read: (range: ByteRange) => Effect.Effect<Stream.Stream<Uint8Array>, E, R>
}

const unsatisfiable = (sizeBytes: number, etag: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: `Range: the file has ${sizeBytes} bytes` },
    { status: 416, headers: { etag, "accept-ranges": "bytes", "content-range": `bytes */${sizeBytes}` } }
  )

/**
 * The answer to a GET or HEAD: the whole, one range (206, or 416), or 304. Several ranges, and a range of another version
 * (`If-Range`), are answered with the whole. Source: RFC 9110, 13 and 14.
 */
export const answerBytes = <E, R>(
  request: HttpServerRequest.HttpServerRequest,
  { contentType, etag, headers: own, read, sizeBytes }: ServedBytes<E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> => {
  const headers = { etag, "accept-ranges": "bytes", ...own }
  if (isNoneMatch(request.headers["if-none-match"], etag)) {
    return Effect.succeed(HttpServerResponse.empty({ status: 304, headers }))
  }
  const ifRange = request.headers["if-range"]
  const isRangeMeant = request.method === "GET" && (ifRange === undefined || ifRange === etag)
  const wish = requestedRange(isRangeMeant ? request.headers["range"] : undefined, sizeBytes)
  if (wish._tag === "Unsatisfiable") return Effect.succeed(unsatisfiable(sizeBytes, etag))
  const range = wish._tag === "Part" ? wish.range : { from: 0, to: sizeBytes }
  const part =
    wish._tag === "Part" ? { "content-range": `bytes ${range.from}-${range.to - 1}/${sizeBytes}` } : {}
  return Effect.map(read(range), (bytes) =>
    HttpServerResponse.stream(bytes, {
      status: wish._tag === "Part" ? 206 : 200,
      contentType,
      contentLength: range.to - range.from,
      headers: { ...headers, ...part }
    })
  )
}
