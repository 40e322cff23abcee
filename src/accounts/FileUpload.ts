import { ByteSize, Effect, Predicate, Schema, Stream } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import type { Files } from "./Files.ts"
import { BadRequest, PayloadTooLarge, StorageFull } from "#schemas/core/Problem.ts"

/** The form is not one field `file` with a file in it. */
class FormInvalid extends Schema.TaggedError<FormInvalid>()("FormInvalid", { problem: Schema.String }) {}

/** Bytes of a form beside its file, which is measured exactly where it is stored: boundaries and part headers. */
const formOverheadBytes = 64 * 1024

const expected = "file: expected multipart/form-data with one field named file that holds a file"

/** Stores the one file of a multipart form while it arrives; nothing of it is kept in memory. */
export const receiveFile = (
  files: Files["Service"],
  userId: string,
  request: HttpServerRequest.HttpServerRequest,
  maxFileSizeBytes: number
) =>
  Effect.gen(function* () {
    if (!/^multipart\/form-data\s*;/i.test(request.headers["content-type"] ?? "")) {
      return yield* new FormInvalid({ problem: expected })
    }
    let stored: { readonly id: string; readonly filename: string } | undefined
    yield* Stream.runForEach(request.multipartStream, (part) =>
      Effect.gen(function* () {
        if (stored !== undefined) return yield* new FormInvalid({ problem: "file: expected one field only" })
        if (part._tag !== "File" || part.key !== "file") return yield* new FormInvalid({ problem: expected })
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
    return stored ?? (yield* new FormInvalid({ problem: expected }))
  }).pipe(
    Effect.provideService(
      HttpIncomingMessage.MaxBodySize,
      ByteSize.bytes(maxFileSizeBytes + formOverheadBytes)
    ),
    Effect.catchTags({
      FormInvalid: ({ problem }) => Effect.fail(BadRequest.of(problem)),
      BlobTooLarge: () => Effect.fail(tooLarge(maxFileSizeBytes)),
      DiskFull: () => Effect.fail(StorageFull.of("The disk is full; the file was not stored")),
      MultipartError: ({ reason }) =>
        Predicate.isTagged(reason, "Parse")
          ? Effect.fail(BadRequest.of("file: the form is cut off or malformed"))
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
