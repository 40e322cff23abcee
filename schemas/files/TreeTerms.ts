import { Schema } from "effect"
import { integer } from "../core/Text.ts"

/** Terms that requests and answers about files and directories share. Source: contract/files#tree. */

export const Permission = Schema.Literals(["owner", "write", "read"]).annotate({
  description: "What the caller may do with it"
})

const cursorExpected = "`cursor` of another page"
export const Cursor = Schema.String.check(
  Schema.isPattern(/^[0-9A-Za-z_-]{1,6000}$/u, { expected: cursorExpected })
).annotate({ description: cursorExpected })

export const limitOf = (most: number, otherwise: number) =>
  Schema.optionalKey(integer(1, most).annotate({ description: "Page size", default: otherwise }))

export const ifMatch = Schema.optionalKey(
  Schema.String.annotate({ description: "The ETag that it has to have, else 412" })
)

export const OnConflict = Schema.Literals(["fail", "replace", "rename"]).annotate({
  description: "Where the name is taken: 409, the other file goes to the trash, or this one gets a number",
  default: "fail"
})
export type OnConflict = typeof OnConflict.Type

export const Trashed = Schema.Struct({
  deleted: Schema.Literal(true),
  trashId: Schema.String.annotate({ description: "Its entry in the trash" })
}).annotate({ identifier: "Trashed", description: "It is in the trash" })

export const Purged = Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
  identifier: "Purged",
  description: "It is gone for good"
})
