import { Schema } from "effect"
import { idSchema } from "../core/Ids.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { UploadedFile } from "./UploadedFile.ts"

export const UploadId = idSchema("upl", "resumable upload")

/** Source: contract/files#resumable-uploads. */
export const Upload = Schema.Struct({
  id: UploadId,
  url: Schema.String.annotate({ description: "The path of HEAD, PATCH and DELETE" }),
  filename: Schema.NullOr(Schema.String).annotate({ description: "null: a partial upload" }),
  path: Schema.NullOr(Schema.String).annotate({ description: "As it was given" }),
  dir: Schema.NullOr(Schema.String),
  directoryId: Schema.NullOr(Schema.String),
  partial: Schema.Boolean.annotate({ description: "It becomes no file by itself" }),
  size: Schema.NullOr(Schema.Int).annotate({ description: "Bytes that it will have; null: not told yet" }),
  offset: Schema.Int.annotate({ description: "Bytes that are there" }),
  modifiedAt: Schema.NullOr(Timestamp).annotate({ description: "The file's own time, as it was given" }),
  createdAt: Timestamp,
  expiresAt: Timestamp.annotate({ description: "It is gone then, unless more of it comes" }),
  file: Schema.NullOr(UploadedFile).annotate({ description: "What it has become; null: it goes on" })
}).annotate({ identifier: "Upload", description: "An upload that comes in several requests" })
export type Upload = typeof Upload.Type
