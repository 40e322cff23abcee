import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { Gone, NotFound, RateLimited, Unauthorized } from "../core/Problem.ts"

const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

const params = { token: PathId.annotate({ description: "The link's token" }) }
const refusals = [Unauthorized.plain, NotFound.plain, Gone.plain, RateLimited.plain] as const

const password = text("The link's password; also in the header `X-Share-Password`")
const download = Schema.optionalKey(
  Schema.Literals(["0", "1"]).annotate({ description: "`1`: `Content-Disposition: attachment`" })
)

/** As the document describes it. It is served beside the Effect pipeline, by src/files/links/DirectRoutes.ts. */
export class DirectApi extends HttpApiGroup.make("direct")
  .add(
    HttpApiEndpoint.get("openLink", "/:token", {
      params,
      query: { password, download, ticket: text("That of a POST's answer: goes on with its download") },
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/octet-stream" }),
      error: refusals
    })
      .annotate(OpenApi.Summary, "Download by a link")
      .annotate(
        OpenApi.Description,
        "The file, or an archive of the directory. HEAD counts nothing. A link with a cap shows browsers, previewers and " +
          "prefetches a page, and counts nothing then. A download that was cut goes on by `Range` from the same address, for an " +
          "hour, and counts once."
      ),
    HttpApiEndpoint.post("takeLink", "/:token", {
      params,
      query: { password, download },
      payload: Schema.Struct({ password: text("The link's password") }).pipe(
        HttpApiSchema.asFormUrlEncoded()
      ),
      success: Schema.Void.pipe(HttpApiSchema.status(303)),
      error: refusals
    })
      .annotate(OpenApi.Summary, "Begin a download by a link")
      .annotate(
        OpenApi.Description,
        "Counts it, and leads to the bytes: `Location` is good for an hour and any number of ranges."
      )
  )
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Direct", description: "Share links as those who have them use them." })
  )
  .prefix("/direct") {}
