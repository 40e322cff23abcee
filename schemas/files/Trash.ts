import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { NotFound } from "../core/Problem.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { DeviceHeader } from "./DeviceHeader.ts"
import { fullAccess, readAccess } from "./FilesAccess.ts"
import { Cursor, limitOf, Purged } from "./TreeTerms.ts"

const TrashItem = Schema.Struct({
  id: Schema.String.annotate({ description: "Of the entry" }),
  kind: Schema.Literals(["file", "directory"]),
  itemId: Schema.String.annotate({
    description: "Of the file (fg_…) or directory (dir_…), for its restoration"
  }),
  name: Schema.String,
  path: Schema.String.annotate({ description: "Where it was, from the bucket on" }),
  size: Schema.Finite.annotate({ description: "Bytes of all versions of all that is in it" }),
  trashedAt: TimestampOfDate,
  expiresAt: TimestampOfDate.annotate({ description: "When it is deleted for good" })
}).annotate({ identifier: "TrashItem", description: "A file or directory in the trash" })
export type TrashItem = typeof TrashItem.Type

const StorageUsage = Schema.Struct({
  usedBytes: Schema.Finite.annotate({ description: "All versions, and the trash" }),
  trashBytes: Schema.Finite,
  quotaBytes: Schema.NullOr(Schema.Finite).annotate({ description: "null: none" })
}).annotate({ identifier: "StorageUsage", description: "What the caller's files take" })

/** The trash. Source: contract/files#trash. */
export class TrashApi extends HttpApiGroup.make("trash")
  .add(
    HttpApiEndpoint.get("listTrash", "/trash", {
      query: { limit: limitOf(1_000, 100), cursor: Schema.optionalKey(Cursor) },
      success: Schema.Struct({
        items: Schema.Array(TrashItem),
        cursor: Schema.NullOr(Schema.String).annotate({
          description: "Of the next page; null: there is none"
        })
      }).annotate({ identifier: "TrashList", description: "What was deleted, newest first" })
    })
      .annotateMerge(readAccess)
      .annotate(OpenApi.Summary, "List the trash"),
    HttpApiEndpoint.get("readStorage", "/storage", { success: StorageUsage })
      .annotateMerge(readAccess)
      .annotate(OpenApi.Summary, "Read how much room one's files take"),
    HttpApiEndpoint.delete("emptyTrash", "/trash", { success: Purged }).annotate(
      OpenApi.Summary,
      "Delete all that is in the trash for good"
    ),
    HttpApiEndpoint.delete("purgeTrashItem", "/trash/:id", {
      params: { id: PathId },
      success: Purged,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Delete one entry of the trash for good")
  )
  .annotateMerge(fullAccess)
  .middleware(DeviceHeader)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Trash", description: "What was deleted lately, and what it all takes." })
  )
  .prefix("/api") {}
