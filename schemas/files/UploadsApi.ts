import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import {
  Conflict,
  Gone,
  NotFound,
  PayloadTooLarge,
  PreconditionFailed,
  RequestTimeout,
  StorageFull,
  UnprocessableContent,
  UnsupportedMediaType
} from "../core/Problem.ts"
import { partAccess, writeAccess } from "./FilesAccess.ts"
import { Upload } from "./Upload.ts"

const params = { id: PathId }

const bytes = HttpApiSchema.StreamUint8Array({ contentType: "application/offset+octet-stream" })

const receiving = [
  NotFound.plain,
  RequestTimeout.plain,
  Conflict.plain,
  Gone.plain,
  PreconditionFailed.plain,
  PayloadTooLarge.plain,
  UnsupportedMediaType.plain,
  UnprocessableContent.plain,
  StorageFull.plain
]

const text = (summary: string, description: string) => OpenApi.annotations({ summary, description })

/** As the document describes it. It is served beside the Effect pipeline, by src/files/uploads/TusRoutes.ts. */
export class UploadsApi extends HttpApiGroup.make("uploads")
  .add(
    HttpApiEndpoint.post("createUpload", "/uploads", {
      payload: bytes,
      success: HttpApiSchema.Empty(201),
      error: receiving
    })
      .annotateMerge(writeAccess)
      .annotateMerge(
        text(
          "Begin a resumable upload",
          "tus 1.0.0: `Upload-Length` or `Upload-Defer-Length: 1`, and `Upload-Metadata` with `filename`, `filetype`, `path`, " +
            "`dir` or `directoryId`, `modifiedAt`, `sha256`, `ifVersion`, `clientEncrypted`, `encryptionKeyId`, `link`. The " +
            "first bytes may come with it. `Location` is the path of the upload."
        )
      ),
    HttpApiEndpoint.get("listUploads", "/uploads", {
      success: Schema.Struct({ uploads: Schema.Array(Upload) })
    })
      .annotateMerge(writeAccess)
      .annotateMerge(text("List open resumable uploads", "Those that are not complete, the oldest first.")),
    HttpApiEndpoint.get("readUpload", "/uploads/:id", { params, success: Upload, error: NotFound.plain })
      .annotateMerge(writeAccess)
      .annotateMerge(
        text(
          "Read a resumable upload",
          "Also for a day after it has become a file. It disturbs nothing; HEAD tells `Upload-Offset` and ends a request that " +
            "still sends."
        )
      ),
    HttpApiEndpoint.patch("appendToUpload", "/uploads/:id", {
      params,
      payload: bytes,
      success: HttpApiSchema.Empty(204),
      error: receiving
    })
      .annotateMerge(partAccess)
      .annotateMerge(
        text(
          "Append to a resumable upload",
          "tus 1.0.0: bytes from `Upload-Offset` on. What comes before a cut is kept. The answer to the last of them comes when " +
            "the file is there; its version is in `Upload-File-Id`."
        )
      ),
    HttpApiEndpoint.delete("endUpload", "/uploads/:id", {
      params,
      success: HttpApiSchema.Empty(204),
      error: [NotFound.plain, PreconditionFailed.plain]
    })
      .annotateMerge(writeAccess)
      .annotateMerge(text("End a resumable upload", "Its bytes go; a file that it has become stays."))
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Resumable uploads",
      description:
        "Uploads that go on where they were cut off, by the tus protocol 1.0.0 with its extensions."
    })
  )
  .prefix("/api") {}
