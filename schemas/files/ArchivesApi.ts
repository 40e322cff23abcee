import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, BodilessErrors } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { NotFound, UnprocessableContent } from "../core/Problem.ts"
import { readAccess } from "./FilesAccess.ts"

const description =
  "A tar archive (`.tgz`) of the directory with all that is below it, as it is now; `root`: of all buckets. " +
  "Content-Length and ETag are exact, and `HEAD`, `Range` (one range), `If-Range` and `If-None-Match` work, so that " +
  "a download that was cut can be resumed. Errors have no body."

/** As the document describes it. It is served beside the Effect pipeline, by src/files/archive/ArchivesRoutes.ts. */
export class ArchivesApi extends HttpApiGroup.make("archives")
  .add(
    HttpApiEndpoint.get("archive", "/download/:dirId", {
      params: { dirId: PathId.annotate({ description: "Id of a directory, or `root`" }) },
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/x-gzip" }),
      error: [NotFound.plain, UnprocessableContent.plain]
    })
      .annotate(OpenApi.Identifier, "files.archive")
      .annotate(OpenApi.Summary, "Download a directory as an archive")
      .annotate(OpenApi.Description, description)
      .annotate(BodilessErrors, true)
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(readAccess)
  .annotateMerge(
    OpenApi.annotations({ title: "Archives", description: "Directories as one file, made as it is sent." })
  )
  .prefix("/api") {}
