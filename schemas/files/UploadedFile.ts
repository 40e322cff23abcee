import { Schema } from "effect"
import { idSchema } from "../core/Ids.ts"

/** Source: contract/files#uploads. */
export const UploadedFile = Schema.Struct({
  name: Schema.String,
  size: Schema.Int.annotate({ description: "Bytes" }),
  directUrl: Schema.NullOr(Schema.String).annotate({ description: "A link that works for an hour" }),
  fileId: idSchema("fv", "version of a file"),
  versionGroupId: idSchema("fg", "file"),
  version: Schema.Int,
  fileHash: Schema.String.annotate({ description: "SHA-256 of the stored bytes, hexadecimal" }),
  mimeType: Schema.String,
  directoryId: idSchema("dir", "directory"),
  isEncrypted: Schema.Boolean
}).annotate({ identifier: "UploadedFile", description: "A version that an upload has made" })
export type UploadedFile = typeof UploadedFile.Type
