import { Schema } from "effect"
import { sendSchemas } from "./SendApi.ts"
import { attachmentsMax } from "./SendTerms.ts"

const optional = Schema.optionalKey

const CallFile = Schema.Struct({
  filename: Schema.String.check(Schema.isBetweenLength(1, 255)).annotate({
    description: "Its extension decides how it is shown",
    examples: ["build.log"]
  }),
  text: optional(Schema.String.annotate({ description: "The content of a text file" })),
  content_base64: optional(
    Schema.String.annotate({
      description: "The content of any other file, in base64, in the place of `text`"
    })
  ),
  content_type: optional(Schema.String.annotate({ description: "Default: by the extension" }))
}).annotate({ description: "A file with either `text` or `content_base64`, at most 50 MB" })

/** The arguments of the tool `send_notification` as they are published; `streams/notify/SendCall.ts` reads them. */
export const SendCall = Schema.Struct({
  app: sendSchemas.app,
  message: sendSchemas.message,
  title: optional(sendSchemas.title),
  url: optional(sendSchemas.url),
  project: optional(sendSchemas.project),
  body: optional(sendSchemas.body),
  priority: optional(sendSchemas.priority),
  attachments: optional(
    Schema.Array(CallFile)
      .check(Schema.isMaxLength(attachmentsMax))
      .annotate({ description: "Files, at most 20 together with `attachment_ids`" })
  ),
  attachment_ids: optional(
    sendSchemas.uploads.annotate({
      description: "Ids of files that were uploaded by POST /api/v1/attachments"
    })
  )
})
