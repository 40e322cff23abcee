import { Schema } from "effect"
import { Multipart } from "effect/http"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, BodilessErrors } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import {
  Conflict,
  NotFound,
  PayloadTooLarge,
  PreconditionFailed,
  RequestTimeout,
  StorageFull,
  UnprocessableContent
} from "../core/Problem.ts"
import { readAccess, writeAccess } from "./FilesAccess.ts"
import { UploadedFile } from "./UploadedFile.ts"

const Uploaded = Schema.Struct({ files: Schema.Array(UploadedFile) }).annotate({
  identifier: "UploadedFiles",
  description: "In the order in which the files came"
})

const refusals = [
  NotFound.plain,
  RequestTimeout.plain,
  Conflict.plain,
  PayloadTooLarge.plain,
  UnprocessableContent.plain,
  StorageFull.plain
] as const

const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

const perFile = {
  modifiedAt: text("The file's own time, an ISO-8601 instant with an offset"),
  sha256: text("SHA-256 of the bytes as sent, hexadecimal; others are 422"),
  ifVersion: text("The id of the version that has to be current, or `none`; else 409"),
  clientEncrypted: text("`true`: the bytes are encrypted, and kept as they are"),
  encryptionKeyId: text("The key that they are encrypted with"),
  link: text("`1`: with a link that works for an hour")
}

/** Per file in the order of the files; the last three are of all files. */
const fields = {
  path: text("Of each file in order: below the directory, such as `a/b.txt`; makes directories"),
  ...perFile
}

const place = {
  dir: text("The name of a bucket, `uploads` where absent; it is made where there is none"),
  directoryId: text("The id of a directory, in the place of `dir`")
}

/** As the document describes them. They are served beside the Effect pipeline, by src/files/transfers/TransferRoutes.ts. */
export class TransfersApi extends HttpApiGroup.make("transfers")
  .add(
    HttpApiEndpoint.post("cliUpload", "/cli/upload", {
      payload: Schema.Struct({ files: Multipart.FilesSchema, dir: place.dir }).pipe(
        HttpApiSchema.asMultipartStream()
      ),
      success: Uploaded,
      error: refusals
    })
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Upload files, with links")
      .annotate(
        OpenApi.Description,
        "multipart/form-data. Each file becomes the next version of the file of its name in the bucket `dir`. Each item has " +
          "a link that works for an hour."
      ),
    HttpApiEndpoint.post("uploadFiles", "/upload", {
      payload: Schema.Struct({ files: Multipart.FilesSchema, ...place, ...fields }).pipe(
        HttpApiSchema.asMultipartStream()
      ),
      success: Uploaded,
      error: refusals
    })
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Upload files")
      .annotate(
        OpenApi.Description,
        "multipart/form-data: files in `files` or `file`, at most 1,000, and fields in any order. All files are stored, or " +
          "none. The nth `path`, `modifiedAt`, `sha256` and `ifVersion` is of the nth file."
      ),
    HttpApiEndpoint.put("uploadRaw", "/upload/:bucket/*", {
      params: { bucket: Schema.String },
      query: perFile,
      payload: HttpApiSchema.StreamUint8Array({ contentType: "application/octet-stream" }),
      success: [UploadedFile, UploadedFile.pipe(HttpApiSchema.status(201))],
      error: [...refusals, PreconditionFailed.plain]
    })
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Upload a file as it is")
      .annotate(
        OpenApi.Description,
        "The body is the file, the path its place. 201 for a new file, 200 for a new version. `If-Match` takes the ETag of " +
          "the current version, `If-None-Match: *` makes a new file only; else 412."
      ),
    HttpApiEndpoint.get("readFile", "/files/:id", {
      params: { id: PathId },
      query: {
        download: Schema.optionalKey(
          Schema.Literals(["0", "1"]).annotate({ description: "`1`: `Content-Disposition: attachment`" })
        )
      },
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/octet-stream" }),
      error: NotFound.plain
    })
      .annotateMerge(readAccess)
      .annotate(BodilessErrors, true)
      .annotate(OpenApi.Summary, "Read a file")
      .annotate(
        OpenApi.Description,
        "By the id of a version, or of a file for its current one. HEAD, `Range` (one), `If-Range`, `If-Match`, " +
          "`If-None-Match`, `If-Modified-Since` and `If-Unmodified-Since` work. Errors have no body."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Transfers", description: "The bytes of shared files, up and down." })
  )
  .prefix("/api") {}
