import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { Breakdown, breakdownQuery } from "./Breakdown.ts"
import { Drops } from "./Drops.ts"
import { periodQuery, questionQuery, Realtime, SiteStats } from "./Stats.ts"
import { NotFound, RateLimited } from "../core/Problem.ts"

const params = { id: PathId }

export const Csv = Schema.String.pipe(
  HttpApiSchema.asText({ contentType: "text/csv; charset=utf-8" })
).annotate({
  description: "With `format=csv`: a line of names, then the rows"
})

/** For both the owner's endpoints and the public ones. */
export const figures = {
  stats: {
    params,
    query: questionQuery,
    success: [SiteStats, Csv],
    error: NotFound.plain,
    summary: "Summary and time series of a period",
    description:
      "Evaluated in the site's time zone. What was accepted before the request is in the answer. Filters hold " +
      "together; with `page`, visitors, page views and events are that page's, all else the whole visits that saw it."
  },
  breakdown: {
    params,
    query: breakdownQuery,
    success: [Breakdown, Csv],
    error: NotFound.plain,
    summary: "The most frequent values of a dimension",
    description:
      "Ranked by visitors. Filters as for stats. Visits count where they started, page views and events where they " +
      "happened, visitors where they were active."
  },
  realtime: { params, success: Realtime, error: NotFound.plain, summary: "The last minutes" }
} as const

/** Figures for the site's owner. Source: contract/analytics#endpoints. */
export class StatsApi extends HttpApiGroup.make("stats")
  .add(
    HttpApiEndpoint.get("siteStats", "/sites/:id/stats", figures.stats)
      .annotate(OpenApi.Summary, figures.stats.summary)
      .annotate(OpenApi.Description, figures.stats.description),
    HttpApiEndpoint.get("siteBreakdown", "/sites/:id/breakdown", figures.breakdown)
      .annotate(OpenApi.Summary, figures.breakdown.summary)
      .annotate(OpenApi.Description, figures.breakdown.description),
    HttpApiEndpoint.get("siteRealtime", "/sites/:id/realtime", figures.realtime).annotate(
      OpenApi.Summary,
      figures.realtime.summary
    ),
    HttpApiEndpoint.get("siteDrops", "/sites/:id/drops", {
      params,
      success: Drops,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "What was sent and does not count, and why"),
    HttpApiEndpoint.get("exportSite", "/sites/:id/export", {
      params,
      query: periodQuery,
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/x-ndjson" }),
      error: NotFound.plain
    })
      .annotate(OpenApi.Summary, "All events of a period")
      .annotate(
        OpenApi.Description,
        "One JSON object a line, as they are stored, day by day and visitor by visitor: no addresses, no User-Agents. " +
          "A `url` is put together from what is stored: host name, path and utm fields, always with https and without a " +
          "port. One of `kind` engage has none: its time is for the page view with its `pv`, and counts nowhere where " +
          "there is no such page view."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Statistics", description: "What was counted." }))
  .prefix("/api/v1") {}

const publicErrors = [NotFound.plain, RateLimited.plain] as const

/** The same for sites that their owner has made public. Source: contract/analytics#public-sites. */
export class PublicStatsApi extends HttpApiGroup.make("publicStats")
  .add(
    HttpApiEndpoint.get("publicSiteStats", "/sites/:id/stats", {
      ...figures.stats,
      error: publicErrors
    }).annotate(OpenApi.Summary, `${figures.stats.summary}, of a public site`),
    HttpApiEndpoint.get("publicSiteBreakdown", "/sites/:id/breakdown", {
      ...figures.breakdown,
      error: publicErrors
    }).annotate(OpenApi.Summary, `${figures.breakdown.summary}, of a public site`),
    HttpApiEndpoint.get("publicSiteRealtime", "/sites/:id/realtime", {
      ...figures.realtime,
      error: publicErrors
    }).annotate(OpenApi.Summary, `${figures.realtime.summary} of a public site`)
  )
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Public statistics", description: "Of public sites, without a key." })
  )
  .prefix("/api/v1/public") {}
