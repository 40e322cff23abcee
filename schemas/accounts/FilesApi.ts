import { Schema } from "effect"
import { Multipart } from "effect/http"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { FileId, PathId } from "../core/Ids.ts"
import { Deleted } from "./AccountApi.ts"
import { NotFound, PayloadTooLarge, RequestTimeout, StorageFull } from "../core/Problem.ts"

/** Source: contract/accounts#files. */
export const File = Schema.Struct({
  id: FileId,
  filename: Schema.String,
  url: Schema.String.annotate({ description: "Path of the download" })
}).annotate({ identifier: "File", description: "A stored file" })
export type File = typeof File.Type

export class NothingDeleted extends Schema.Error<NothingDeleted>("NothingDeleted")(
  { deleted: Schema.Literal(false) },
  { httpApiStatus: 404, description: "Not there, or not the caller's to delete" }
) {
  readonly _tag = "NothingDeleted"
}

const fileDescription =
  "The bytes with their stored Content-Type, `Content-Disposition: inline` and an ETag. HEAD, `Range` (one range: " +
  "206, or 416) and `If-None-Match` (304) work. Any valid key may read a file whose id it knows."

/** As the document describes them. They are served beside the Effect pipeline, by src/accounts/FileTransfer.ts. */
export class FilesApi extends HttpApiGroup.make("files")
  .add(
    HttpApiEndpoint.post("upload", "/files", {
      payload: Schema.Struct({ file: Multipart.SingleFileSchema }).pipe(HttpApiSchema.asMultipartStream()),
      success: File,
      error: [RequestTimeout.plain, PayloadTooLarge.plain, StorageFull.plain]
    })
      .annotate(OpenApi.Identifier, "account.uploadFile")
      .annotate(OpenApi.Summary, "Store a file")
      .annotate(
        OpenApi.Description,
        "multipart/form-data with the one field `file`; at most MAX_FILE_SIZE bytes."
      ),
    HttpApiEndpoint.get("download", "/files/:id", {
      params: { id: PathId },
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/octet-stream" }),
      error: NotFound.plain
    })
      .annotate(OpenApi.Identifier, "account.downloadFile")
      .annotate(OpenApi.Summary, "Read a file")
      .annotate(OpenApi.Description, fileDescription),
    HttpApiEndpoint.delete("delete", "/files/:id", {
      params: { id: PathId },
      success: Deleted,
      error: NothingDeleted
    })
      .annotate(OpenApi.Identifier, "account.deleteFile")
      .annotate(OpenApi.Summary, "Delete a file of one's own")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotate(OpenToRouterKeys, true)
  .annotateMerge(OpenApi.annotations({ title: "Files", description: "Files of the key's owner." }))
  .prefix("/api/v1") {}
