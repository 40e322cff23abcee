import { ByteSize, Effect, Predicate, Schema, Stream } from "effect"
import { HttpIncomingMessage, type HttpServerRequest, Multipart } from "effect/http"
import { PayloadTooLarge, StorageFull, BadRequest } from "#schemas/core/Problem.ts"
import type { Files } from "./Files.ts"

/** The form is not one field `file` with a file in it. */
class FormInvalid extends Schema.TaggedError<FormInvalid>()("FormInvalid", { problem: Schema.String }) {}

/** Bytes of a form beside its file: boundaries and part headers. */
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
    const stored = yield* Stream.runFoldEffect(
      request.multipartStream,
      (): { readonly id: string; readonly filename: string } | undefined => undefined,
      (already, part) =>
        Effect.gen(function* () {
          if (already !== undefined) {
            yield* files.remove(already.id, userId)
            return yield* new FormInvalid({ problem: "file: expected one field only" })
          }
          if (part._tag !== "File" || part.key !== "file")
            return yield* new FormInvalid({ problem: expected })
          return yield* files.upload(userId, {
            filename: part.name,
            contentType: part.contentType,
            content: part.content
          })
        })
    )
    return stored ?? (yield* new FormInvalid({ problem: expected }))
  }).pipe(
    Effect.provideService(
      HttpIncomingMessage.MaxBodySize,
      ByteSize.bytes(maxFileSizeBytes + formOverheadBytes)
    ),
    Effect.provideService(Multipart.MaxFileSize, ByteSize.bytes(maxFileSizeBytes)),
    Effect.catchTags({
      FormInvalid: ({ problem }) => Effect.fail(new BadRequest({ error: problem })),
      FileNotFound: () => Effect.fail(new BadRequest({ error: "file: expected one field only" })),
      BlobTooLarge: () => Effect.fail(tooLarge(maxFileSizeBytes)),
      DiskFull: () => Effect.fail(new StorageFull({ error: "The disk is full; the file was not stored" })),
      MultipartError: ({ reason }) =>
        Predicate.isTagged(reason, "Parse")
          ? Effect.fail(new BadRequest({ error: "file: the form is cut off or malformed" }))
          : Predicate.isTagged(reason, "InternalError")
            ? Effect.die(reason)
            : Effect.fail(tooLarge(maxFileSizeBytes))
    })
  )

const tooLarge = (maxFileSizeBytes: number): PayloadTooLarge =>
  new PayloadTooLarge({ error: `file: at most ${maxFileSizeBytes} bytes` })
