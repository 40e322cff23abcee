import type { HttpServerRequest } from "effect/http"
import { answerBytes } from "#src/http/ByteAnswer.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"
import type { Files } from "./Files.ts"
import type { FileRow } from "./FilesRepository.ts"

/** Types that a browser would run as a page of this origin. Source: contract/accounts#files. */
const isActive = (contentType: string): boolean => /html|xml|svg/i.test(contentType)

const headersOf = (file: FileRow): Record<string, string> => ({
  "content-disposition": contentDisposition("inline", file.filename),
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-cache",
  ...(isActive(file.contentType) ? { "content-security-policy": "sandbox; default-src 'none'" } : {})
})

/** The answer to a GET or HEAD of a file. */
export const answerFile = (
  files: Files["Service"],
  request: HttpServerRequest.HttpServerRequest,
  file: FileRow
) =>
  answerBytes(request, {
    sizeBytes: file.sizeBytes,
    contentType: file.contentType,
    etag: `"${file.sha256}"`,
    headers: headersOf(file),
    read: (range) => files.read(file, range)
  })
