import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { Faults } from "../core/Faults.ts"
import { PathId } from "../core/Ids.ts"
import { NotFound } from "../core/Problem.ts"
import { RateLimit } from "../core/RateLimit.ts"
import { Drops } from "./Drops.ts"
import { filterQuery, PeriodName, Realtime, SiteStats } from "./Stats.ts"

const params = { id: PathId }

/** What was counted, for the site's owner. Source: spec 2 A, Endpoints. */
export class StatsApi extends HttpApiGroup.make("stats")
  .add(
    HttpApiEndpoint.get("siteStats", "/sites/:id/stats", {
      params,
      query: { period: Schema.optionalKey(PeriodName.annotate({ default: "30d" })), ...filterQuery },
      success: SiteStats,
      error: NotFound
    })
      .annotate(OpenApi.Summary, "Summary and time series of a period")
      .annotate(
        OpenApi.Description,
        "Evaluated in the site's time zone. What was accepted before the request is in the answer. Filters hold " +
          "together; with `page`, visitors, page views and events are that page's, all else the whole visits that saw it."
      ),
    HttpApiEndpoint.get("siteRealtime", "/sites/:id/realtime", {
      params,
      success: Realtime,
      error: NotFound
    }).annotate(OpenApi.Summary, "The last minutes"),
    HttpApiEndpoint.get("siteDrops", "/sites/:id/drops", {
      params,
      success: Drops,
      error: NotFound
    }).annotate(OpenApi.Summary, "What was sent and does not count, and why")
  )
  .middleware(RateLimit)
  .middleware(Authorization)
  .middleware(Faults)
  .annotateMerge(OpenApi.annotations({ title: "Statistics", description: "What was counted." }))
  .prefix("/api/v1") {}
