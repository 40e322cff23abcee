import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { CreatedSite, NewSite, RotatedSecret, Site, SiteChange, SiteList } from "./Site.ts"
import { Conflict, NotFound } from "../core/Problem.ts"

const params = { id: PathId }

/** Sites and their secrets, for their owner's account keys. Source: contract/analytics#sites. */
export class SitesApi extends HttpApiGroup.make("sites")
  .add(
    HttpApiEndpoint.get("listSites", "/sites", { success: SiteList }).annotate(
      OpenApi.Summary,
      "List one's own sites"
    ),
    HttpApiEndpoint.post("createSite", "/sites", {
      payload: NewSite,
      success: CreatedSite.pipe(HttpApiSchema.status(201)),
      error: Conflict.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make a site")
      .annotate(OpenApi.Description, "A user has at most 1,000 sites (409)."),
    HttpApiEndpoint.patch("updateSite", "/sites/:id", {
      params,
      payload: SiteChange,
      success: Site,
      error: NotFound.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a site"),
    HttpApiEndpoint.delete("deleteSite", "/sites/:id", {
      params,
      success: Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
        identifier: "DeletedSite",
        description: "It takes and shows nothing any more"
      }),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Delete a site"),
    HttpApiEndpoint.post("rotateSiteSecret", "/sites/:id/secret", {
      params,
      success: RotatedSecret,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Replace a site's secret")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Sites", description: "Sites whose visits are counted." }))
  .prefix("/api/v1") {}
