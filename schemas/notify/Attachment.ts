import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, Metered, OpenToProjectKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema } from "../core/Ids.ts"
import {
  NotImplemented,
  PayloadTooLarge,
  RequestTimeout,
  StorageFull,
  UnsupportedMediaType
} from "../core/Problem.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { sends } from "./Message.ts"

export const AttachmentId = idSchema("att", "attachment")

/** Source: contract/notify#attachments. */
export const Attachment = Schema.Struct({
  id: AttachmentId,
  filename: Schema.String.annotate({ description: "Letters, digits, `.`, `_` and `-`; at most 255" }),
  contentType: Schema.String,
  size: Schema.Int.annotate({ description: "Bytes" }),
  sha256: Schema.String.annotate({ description: "Of the bytes, hexadecimal" }),
  expiresAt: Timestamp.annotate({ description: "It is deleted then; 24 h from now, unless a message has it" })
}).annotate({ identifier: "Attachment", description: "A file for messages" })
export type Attachment = typeof Attachment.Type

/** As the document describes it. It is served beside the Effect pipeline, by src/notify/attachments/AttachmentsRoutes.ts. */
export class AttachmentsApi extends HttpApiGroup.make("attachments")
  .add(
    HttpApiEndpoint.post("uploadAttachment", "/attachments", {
      query: {
        filename: Schema.optionalKey(
          Schema.String.annotate({
            description:
              "Or as the header `X-Filename`; other characters become `_`; `file` where it is absent"
          })
        )
      },
      payload: HttpApiSchema.StreamUint8Array({ contentType: "application/octet-stream" }),
      success: Attachment,
      error: [
        RequestTimeout.plain,
        PayloadTooLarge.plain,
        UnsupportedMediaType.plain,
        NotImplemented.plain,
        StorageFull.plain
      ]
    })
      .annotate(OpenToProjectKeys, "only")
      .annotate(Metered, sends)
      .annotate(OpenApi.Summary, "Upload a file for messages")
      .annotate(
        OpenApi.Description,
        "The bytes are the body, of any Content-Type but that of a form; without one, or as `application/octet-stream`, it " +
          "is guessed from the name. At most MAX_ATTACHMENT_SIZE. Counts as a send. Its id goes into `attachments` of a " +
          "send within 24 hours."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Attachments", description: "Files of notifications." }))
  .prefix("/api/v1") {}
