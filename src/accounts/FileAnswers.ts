import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { isNoneMatch, rangeWish } from "#src/infra/http/ByteRanges.ts"
import { contentDisposition } from "#src/infra/http/ContentDisposition.ts"
import type { Files } from "./Files.ts"
import type { FileRow } from "./FilesRepository.ts"

/** Markup that a browser would run as a page of this origin. Source: decisions, Accounts (Files). */
const isActive = (contentType: string): boolean => /html|xml|svg/i.test(contentType)

const headersOf = (file: FileRow, etag: string): Record<string, string> => ({
  etag,
  "accept-ranges": "bytes",
  "content-disposition": contentDisposition("inline", file.filename),
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-cache",
  ...(isActive(file.contentType) ? { "content-security-policy": "sandbox; default-src 'none'" } : {})
})

const unsatisfiable = ({ sizeBytes }: FileRow, etag: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: `Range: the file has ${sizeBytes} bytes` },
    { status: 416, headers: { etag, "accept-ranges": "bytes", "content-range": `bytes */${sizeBytes}` } }
  )

/**
 * The answer to a GET or HEAD of a file: the whole of it, one range (206, or 416), or 304. Several ranges, and a range
 * of another version (`If-Range`), are answered with the whole. Source: RFC 9110, 13 and 14.
 */
export const answerFile = (
  files: Files["Service"],
  request: HttpServerRequest.HttpServerRequest,
  file: FileRow
) => {
  const etag = `"${file.sha256}"`
  const headers = headersOf(file, etag)
  if (isNoneMatch(request.headers["if-none-match"], etag)) {
    return Effect.succeed(HttpServerResponse.empty({ status: 304, headers }))
  }
  const ifRange = request.headers["if-range"]
  const isRangeMeant = request.method === "GET" && (ifRange === undefined || ifRange === etag)
  const wish = rangeWish(isRangeMeant ? request.headers["range"] : undefined, file.sizeBytes)
  if (wish._tag === "Unsatisfiable") return Effect.succeed(unsatisfiable(file, etag))
  const range = wish._tag === "Part" ? wish.range : { from: 0, to: file.sizeBytes }
  const part =
    wish._tag === "Part" ? { "content-range": `bytes ${range.from}-${range.to - 1}/${file.sizeBytes}` } : {}
  return Effect.map(files.read(file, range), (bytes) =>
    HttpServerResponse.stream(bytes, {
      status: wish._tag === "Part" ? 206 : 200,
      contentType: file.contentType,
      contentLength: range.to - range.from,
      headers: { ...headers, ...part }
    })
  )
}
