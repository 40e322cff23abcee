import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId, UserId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Conflict, NotFound, PreconditionFailed, StorageFull } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { DeviceHeader } from "./DeviceHeader.ts"
import { fullAccess, readAccess, writeAccess } from "./FilesAccess.ts"
import { SentName } from "./Names.ts"
import { Cursor, ifMatch, limitOf, OnConflict, Permission, Purged, Trashed } from "./TreeTerms.ts"

export const VersionId = idSchema("fv", "version of a file")
export const GroupId = idSchema("fg", "file")

const ofVersion = {
  version: Schema.Int,
  originalName: Schema.String.annotate({ description: "What the file was called when this version came" }),
  mimeType: Schema.String,
  fileSize: Schema.Finite.annotate({ description: "Bytes, as stored" }),
  fileHash: Schema.String.annotate({ description: "SHA-256 of the stored bytes, lower-case hexadecimal" }),
  isEncrypted: Schema.Boolean,
  encryptionKeyId: Schema.NullOr(Schema.String),
  modifiedAt: TimestampOfDate.annotate({ description: "The file's own time" }),
  createdAt: TimestampOfDate,
  url: Schema.String.annotate({ description: "Path of its bytes" })
}

/** Source: contract/files#tree. */
export const StoredFile = Schema.Struct({
  id: VersionId.annotate({ description: "Of the current version" }),
  versionGroupId: GroupId.annotate({ description: "Of the file, whatever its version" }),
  directoryId: Schema.String,
  name: Schema.String,
  path: Schema.String.annotate({ description: "From the bucket on, such as docs/reports/may.pdf" }),
  ownerId: UserId,
  permission: Permission,
  ...ofVersion
}).annotate({ identifier: "StoredFile", description: "A file at its current version" })
export type StoredFile = typeof StoredFile.Type

const FileVersion = Schema.Struct({ id: VersionId, isCurrent: Schema.Boolean, ...ofVersion }).annotate({
  identifier: "FileVersion",
  description: "A version of a file"
})
export type FileVersion = typeof FileVersion.Type

const VersionHistory = Schema.Struct({
  fileId: VersionId.annotate({ description: "The version that was asked for, else the current one" }),
  versionGroupId: GroupId,
  name: Schema.String,
  path: Schema.String,
  directoryId: Schema.String,
  versions: Schema.Array(FileVersion)
}).annotate({ identifier: "VersionHistory", description: "All versions of a file, newest first" })
export type VersionHistory = typeof VersionHistory.Type

const FileChange = Schema.Struct({
  name: Schema.optionalKey(SentName),
  directoryId: Schema.optionalKey(PathId.annotate({ description: "The directory it is moved into" })),
  onConflict: Schema.optionalKey(OnConflict)
}).annotate({ identifier: "FileChange" })
export type FileChange = typeof FileChange.Type

const FileCopy = Schema.Struct({
  name: Schema.optionalKey(SentName),
  directoryId: Schema.optionalKey(PathId.annotate({ description: "Absent: the directory that it is in" })),
  onConflict: Schema.optionalKey(
    Schema.Literals(["fail", "replace", "rename"]).annotate({
      description: "Where the name is taken: 409, a new version of that file, or a number behind the name",
      default: "fail"
    })
  )
}).annotate({ identifier: "FileCopy" })
export type FileCopy = typeof FileCopy.Type

const params = { id: PathId.annotate({ description: "Id of a version (fv_…), or of a file (fg_…)" }) }
const headers = { "if-match": ifMatch }

/** Files and their versions; their bytes are in FilesTransferApi.ts. Source: contract/files#tree. */
export class StoredFilesApi extends HttpApiGroup.make("storedFiles")
  .add(
    HttpApiEndpoint.get("searchFiles", "/files", {
      query: {
        q: Schema.optionalKey(
          line(1, 255).annotate({ description: "Part of a name, in any case; absent: all files" })
        ),
        path: Schema.optionalKey(
          line(1, 4_096).annotate({ description: "Only the file of this path, such as docs/may.pdf" })
        ),
        limit: limitOf(1_000, 100),
        cursor: Schema.optionalKey(Cursor)
      },
      success: Schema.Struct({
        files: Schema.Array(StoredFile),
        cursor: Schema.NullOr(Schema.String).annotate({
          description: "Of the next page; null: there is none"
        })
      }).annotate({ identifier: "FileList", description: "By bucket and path" })
    })
      .annotateMerge(readAccess)
      .annotate(OpenApi.Summary, "Find files by their names"),
    HttpApiEndpoint.patch("updateFile", "/files/:id", {
      params,
      headers,
      payload: FileChange,
      success: StoredFile,
      error: [NotFound.plain, Conflict.plain, PreconditionFailed.plain]
    })
      .middleware(JsonBody)
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Rename or move a file"),
    HttpApiEndpoint.post("copyFile", "/files/:id/copy", {
      params,
      headers,
      payload: FileCopy,
      success: StoredFile.pipe(HttpApiSchema.status(201)),
      error: [NotFound.plain, Conflict.plain, PreconditionFailed.plain, StorageFull.plain]
    })
      .middleware(JsonBody)
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Copy a file, or a version of it"),
    HttpApiEndpoint.delete("trashFile", "/files/:id", {
      params,
      headers,
      success: Trashed,
      error: [NotFound.plain, Conflict.plain, PreconditionFailed.plain]
    })
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Move a file with all its versions to the trash"),
    HttpApiEndpoint.post("restoreFile", "/files/:id/restore", {
      params,
      headers,
      query: { onConflict: Schema.optionalKey(OnConflict) },
      success: StoredFile,
      error: [NotFound.plain, Conflict.plain, PreconditionFailed.plain, StorageFull.plain]
    })
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Restore a file from the trash, or make an old version the current one")
      .annotate(
        OpenApi.Description,
        "A file in the trash goes back to where it was; directories that are gone are made again. Else the version's bytes become a new version."
      ),
    HttpApiEndpoint.get("listVersions", "/files/:id/versions", {
      params,
      success: VersionHistory,
      error: NotFound.plain
    })
      .annotateMerge(readAccess)
      .annotate(OpenApi.Summary, "List the versions of a file"),
    HttpApiEndpoint.delete("deleteVersion", "/files/:id/versions/:versionId", {
      params: { ...params, versionId: PathId },
      success: Purged,
      error: [NotFound.plain, Conflict.plain]
    })
      .annotateMerge(fullAccess)
      .annotate(OpenApi.Summary, "Delete a version that is not current, for good")
  )
  .annotateMerge(fullAccess)
  .middleware(DeviceHeader)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Shared files", description: "Files and their versions." }))
  .prefix("/api") {}
