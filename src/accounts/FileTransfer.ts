import { ByteSize, Effect, Predicate, Stream } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import type { FileRow, Files } from "./Files.ts"
import { invalidField, PayloadTooLarge, StorageFull } from "#schemas/core/Problem.ts"
import { answerBytes } from "#src/http/ByteAnswer.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"

/** Bytes of a form beside its file, which is measured exactly where it is stored: boundaries and part headers. */
const formOverheadBytes = 64 * 1024

const expected = "expected multipart/form-data with one field named file that holds a file"

/** Stores the one file of a multipart form while it arrives; nothing of it is kept in memory. */
export const receiveFile = (
  files: Files["Service"],
  userId: string,
  request: HttpServerRequest.HttpServerRequest,
  maxFileSizeBytes: number
) =>
  Effect.gen(function* () {
    if (!/^multipart\/form-data\s*;/i.test(request.headers["content-type"] ?? "")) {
      return yield* invalidField("file", expected)
    }
    let stored: { readonly id: string; readonly filename: string } | undefined
    yield* Stream.runForEach(request.multipartStream, (part) =>
      Effect.gen(function* () {
        if (stored !== undefined) return yield* invalidField("file", "expected one field only")
        if (part._tag !== "File" || part.key !== "file") return yield* invalidField("file", expected)
        stored = yield* files.upload(userId, {
          filename: part.name,
          contentType: part.contentType,
          content: part.content
        })
      })
    ).pipe(
      // The file was whole, but its form was cut off or had more: its id is never sent.
      Effect.onError(() => (stored === undefined ? Effect.void : forget(files, stored.id, userId)))
    )
    return stored ?? (yield* invalidField("file", expected))
  }).pipe(
    Effect.provideService(
      HttpIncomingMessage.MaxBodySize,
      ByteSize.bytes(maxFileSizeBytes + formOverheadBytes)
    ),
    Effect.catchTags({
      BlobTooLarge: () => Effect.fail(tooLarge(maxFileSizeBytes)),
      DiskFull: () => Effect.fail(StorageFull.of("The disk is full; the file was not stored")),
      MultipartError: ({ reason }) =>
        Predicate.isTagged(reason, "Parse")
          ? Effect.fail(invalidField("file", "the form is cut off or malformed"))
          : Predicate.isTagged(reason, "InternalError")
            ? Effect.die(reason)
            : Effect.fail(tooLarge(maxFileSizeBytes))
    })
  )

/** Without Postgres the file stays: its owner does not know its id, and it cannot be guessed. */
const forget = (files: Files["Service"], id: string, userId: string) =>
  Effect.catch(files.remove(id, userId), (error) =>
    Effect.logWarning(`The unfinished upload ${id} could not be removed`, error)
  )

const tooLarge = (maxFileSizeBytes: number): PayloadTooLarge =>
  PayloadTooLarge.of(`file: at most ${maxFileSizeBytes} bytes`)

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
    sizeBytes: file.size,
    contentType: file.contentType,
    etag: `"${file.sha256}"`,
    headers: headersOf(file),
    read: (range) => files.read(file, range)
  })
