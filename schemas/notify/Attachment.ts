import { Schema } from "effect"
import { idSchema } from "../core/Ids.ts"
import { Timestamp } from "../core/Timestamp.ts"

export const AttachmentId = idSchema("att", "attachment")

const fields = {
  id: AttachmentId,
  filename: Schema.String.annotate({ description: "Letters, digits, `.`, `_` and `-`; at most 255" }),
  contentType: Schema.String,
  size: Schema.Int.annotate({ description: "Bytes" }),
  sha256: Schema.String.annotate({ description: "Of the bytes, hexadecimal" }),
  expiresAt: Timestamp.annotate({ description: "It is deleted then; 24 h from now, unless a message has it" })
}

/** Source: contract/notify#attachments. */
export const Attachment = Schema.Struct(fields).annotate({
  identifier: "Attachment",
  description: "A file for messages"
})
export type Attachment = typeof Attachment.Type

/** A file of a message, as its sender sees it. */
export const MessageAttachment = Schema.Struct({
  ...fields,
  filename: Schema.optionalKey(Schema.String.annotate({ description: "Texts are for account keys alone" })),
  expired: Schema.Boolean.annotate({ description: "Its bytes are not kept any more" })
}).annotate({ identifier: "MessageAttachment", description: "A file of a message" })
