import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId, UserId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Conflict, NotFound, PreconditionFailed } from "../core/Problem.ts"
import { integer, line } from "../core/Text.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { DeviceHeader } from "./DeviceHeader.ts"
import { fullAccess, readAccess, writeAccess } from "./FilesAccess.ts"
import { SentName } from "./Names.ts"
import { StoredFile } from "./StoredFile.ts"
import { Cursor, ifMatch, limitOf, Permission, Trashed } from "./TreeTerms.ts"

export const DirectoryId = idSchema("dir", "directory")

/** Source: contract/files#tree. */
export const Directory = Schema.Struct({
  id: DirectoryId,
  name: Schema.String,
  parentId: Schema.NullOr(DirectoryId).annotate({ description: "null: a bucket" }),
  path: Schema.String.annotate({ description: "From the bucket on, such as docs/reports" }),
  isInbox: Schema.Boolean,
  ownerId: UserId,
  permission: Permission,
  encryptionEnabled: Schema.Boolean,
  versionDays: Schema.NullOr(Schema.Int).annotate({
    description: "Of the bucket: days for which versions are kept that are not current; null: for ever"
  }),
  requiredReplicas: Schema.NullOr(Schema.Int).annotate({ description: "Of the bucket; null: the server's" }),
  createdAt: TimestampOfDate,
  modifiedAt: TimestampOfDate
}).annotate({ identifier: "Directory", description: "A directory; one in the root is a bucket" })
export type Directory = typeof Directory.Type

const DirectoryPage = Schema.Struct({
  directory: Schema.NullOr(Directory).annotate({ description: "null: the root" }),
  directories: Schema.Array(Directory),
  files: Schema.Array(StoredFile),
  cursor: Schema.NullOr(Schema.String).annotate({ description: "Of the next page; null: there is none" })
}).annotate({
  identifier: "DirectoryPage",
  description: "What is in a directory: directories, then files, each in the byte order of their names"
})

const NewDirectory = Schema.Struct({
  name: SentName,
  parentId: Schema.optionalKey(
    Schema.NullOr(PathId).annotate({ description: "The directory it is made in; absent: the root" })
  )
}).annotate({ identifier: "NewDirectory" })
export type NewDirectory = typeof NewDirectory.Type

const DirectoryChange = Schema.Struct({
  name: Schema.optionalKey(SentName),
  parentId: Schema.optionalKey(
    Schema.NullOr(PathId).annotate({ description: "The directory it is moved into; null: the root" })
  ),
  versionDays: Schema.optionalKey(
    Schema.NullOr(integer(0, 36_500)).annotate({ description: "Of a bucket; null: for ever" })
  ),
  requiredReplicas: Schema.optionalKey(
    Schema.NullOr(integer(0, 100)).annotate({ description: "Of a bucket" })
  )
}).annotate({ identifier: "DirectoryChange" })
export type DirectoryChange = typeof DirectoryChange.Type

const params = { id: PathId }
const headers = { "if-match": ifMatch }

/** Directories. Source: contract/files#tree. */
export class DirectoriesApi extends HttpApiGroup.make("directories")
  .add(
    HttpApiEndpoint.get("listDirectories", "/directories", {
      query: {
        path: Schema.optionalKey(
          line(1, 4_096).annotate({ description: "Only the directories of this path, the bucket first" })
        )
      },
      success: Schema.Struct({ directories: Schema.Array(Directory) }).annotate({
        identifier: "DirectoryList",
        description: "All directories, in the byte order of their paths"
      }),
      error: [NotFound.plain, Conflict.plain]
    })
      .annotateMerge(readAccess)
      .annotate(OpenApi.Summary, "List all directories"),
    HttpApiEndpoint.get("readDirectory", "/directories/:id", {
      params: { id: PathId.annotate({ description: "Id of a directory, or root" }) },
      query: { limit: limitOf(1_000, 100), cursor: Schema.optionalKey(Cursor) },
      success: DirectoryPage,
      error: NotFound.plain
    })
      .annotateMerge(readAccess)
      .annotate(OpenApi.Summary, "List what is in a directory, or in the root")
      .annotate(OpenApi.Description, "`ETag` is that of the directory itself, for `If-Match`."),
    HttpApiEndpoint.post("createDirectory", "/directories", {
      payload: NewDirectory,
      success: Directory.pipe(HttpApiSchema.status(201)),
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Make a directory"),
    HttpApiEndpoint.patch("updateDirectory", "/directories/:id", {
      params,
      headers,
      payload: DirectoryChange,
      success: Directory,
      error: [NotFound.plain, Conflict.plain, PreconditionFailed.plain]
    })
      .middleware(JsonBody)
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Rename or move a directory, or change a bucket's settings")
      .annotate(OpenApi.Description, "`versionDays` and `requiredReplicas` take the scope full."),
    HttpApiEndpoint.delete("trashDirectory", "/directories/:id", {
      params,
      headers,
      success: Trashed,
      error: [NotFound.plain, Conflict.plain, PreconditionFailed.plain]
    })
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Move a directory with all that is below it to the trash"),
    HttpApiEndpoint.post("restoreDirectory", "/directories/:id/restore", {
      params,
      query: {
        onConflict: Schema.optionalKey(
          Schema.Literals(["fail", "rename"]).annotate({
            description: "Where its name is taken",
            default: "fail"
          })
        )
      },
      success: Directory,
      error: [NotFound.plain, Conflict.plain]
    })
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Restore a directory from the trash")
  )
  .annotateMerge(fullAccess)
  .middleware(DeviceHeader)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Directories", description: "Buckets and what is in them." }))
  .prefix("/api") {}
