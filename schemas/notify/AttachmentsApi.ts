import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, Metered, OpenToProjectKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import {
  NotImplemented,
  PayloadTooLarge,
  RequestTimeout,
  StorageFull,
  UnsupportedMediaType
} from "../core/Problem.ts"
import { Attachment } from "./Attachment.ts"
import { sends } from "./Message.ts"

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
