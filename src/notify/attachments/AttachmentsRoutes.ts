import { Effect, Predicate, Result } from "effect"
import type { Attachment } from "#schemas/notify/Attachment.ts"
import { AttachmentsApi } from "#schemas/notify/AttachmentsApi.ts"
import { type Problem, RequestTimeout, Unauthorized, UnsupportedMediaType } from "#schemas/core/Problem.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import { type KeyedExchange, type KeyedRoute, keyedRoutes } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import type { BodyEnd } from "#src/front/RawRoute.ts"
import { isMultipart } from "#src/http/MultipartBody.ts"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import { type AttachmentRow, Attachments } from "./Attachments.ts"

/** As answers show it. */
export const shownAttachment = ({
  contentType,
  expiresAt,
  filename,
  id,
  sha256,
  size
}: AttachmentRow): Attachment => ({
  id,
  filename,
  contentType,
  size,
  sha256,
  expiresAt: expiresAt.toISOString()
})

const aForm = UnsupportedMediaType.of(
  "The body is the file itself, without a form; forms with files go to POST /api/v1/messages"
)

/** The name in the query, else in a header, whose bytes are UTF-8. */
const filenameOf = ({ request }: KeyedExchange): string => {
  const named = new URLSearchParams(request.query).get("filename") ?? ""
  if (named !== "") return named
  const sent = request.header("x-filename")
  // oxlint-disable-next-line no-control-regex
  return /^[\u0000-\u00ff]*$/.test(sent) ? Buffer.from(sent, "latin1").toString() : sent
}

/** Why the bytes ended before their end. */
type Cut = Exclude<BodyEnd, "complete"> | Unauthorized

/** The bytes of the body, as long as the key is good. */
const contentOf = ({ body }: KeyedExchange, isOver: () => boolean): BlobSource<Cut> => {
  return async () => {
    const piece = await body.pull()
    if (isOver()) return Result.fail(invalidKey())
    if (!Predicate.isString(piece)) return Result.succeed(piece)
    return piece === "complete" ? Result.succeed(undefined) : Result.fail(piece)
  }
}

const upload = (attachments: Attachments["Service"], maxBytes: number): KeyedRoute["handle"] =>
  Effect.fnUntraced(function* (exchange, key) {
    const { body, request } = exchange
    const contentType = request.header("content-type")
    if (!attachments.isOff && isMultipart(contentType)) return yield* aForm
    let isOver = false
    const unwatch = exchange.watch(() => (isOver = true))
    const stored = yield* attachments
      .put(
        {
          ownerId: key.ownerId,
          keyId: key.id,
          filename: filenameOf(exchange),
          contentType,
          field: "body",
          maxBytes,
          declaredBytes: body.declaredBytes
        },
        contentOf(exchange, () => isOver)
      )
      .pipe(Effect.ensuring(Effect.sync(unwatch)), Effect.result)
    if (Result.isSuccess(stored)) return exchange.sendJson(200, shownAttachment(stored.success))
    const { failure } = stored
    const problem = Predicate.isString(failure) ? cutOff(failure) : failure
    if (problem !== undefined) return yield* problem
  })

/** undefined: there is no one left to answer */
const cutOff = (end: Exclude<BodyEnd, "complete">): Problem | undefined =>
  end === "slow" ? RequestTimeout.of("body: comes too slowly") : undefined

/** Uploads of files for messages, served beside the Effect pipeline. Source: contract/notify#attachments. */
export const attachmentRoutes = Effect.gen(function* () {
  const attachments = yield* Attachments
  const { maxAttachmentBytes } = yield* AppConfig
  return yield* keyedRoutes(AttachmentsApi, {
    // The handler knows the words for a file that is too long; `put` counts.
    uploadAttachment: {
      maxBodyBytes: Number.MAX_SAFE_INTEGER,
      handle: upload(attachments, maxAttachmentBytes)
    }
  })
})
