import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Day } from "../core/Timestamp.ts"
import { NotFound, ServiceUnavailable } from "../core/Problem.ts"

export const VisitsToRebuild = Schema.Struct({
  from: Schema.optionalKey(
    Day.annotate({ description: "The first UTC day; default: the first that there is" })
  ),
  to: Schema.optionalKey(Day.annotate({ description: "The last UTC day; default: the last that there is" })),
  check: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Only compare; nothing is changed", default: false })
  )
}).annotate({ identifier: "VisitsToRebuild" })
export type VisitsToRebuild = typeof VisitsToRebuild.Type

export const RebuiltVisits = Schema.Struct({
  days: Schema.Int.annotate({ description: "Days that were looked at" }),
  events: Schema.Int.annotate({ description: "Stored events of these days" }),
  visits: Schema.Int.annotate({ description: "Visits that they make" }),
  missing: Schema.Int.annotate({ description: "Rows of visits that were not there" }),
  wrong: Schema.Int.annotate({ description: "Rows of visits that said something else" }),
  surplus: Schema.Int.annotate({ description: "Rows of visits that no events make" }),
  next: Schema.NullOr(Schema.String).annotate({
    description: "The day to go on with, as `from` of the next request; null at the end"
  }),
  daysLeft: Schema.Int.annotate({ description: "How many days are left, `next` included" })
}).annotate({ identifier: "RebuiltVisits", description: "How the days compared, before they were put right" })
export type RebuiltVisits = typeof RebuiltVisits.Type

/** Rebuilds visits from events, for the site's owner. Source: contract/analytics#rebuilding-visits. */
export class RebuildApi extends HttpApiGroup.make("rebuild")
  .add(
    HttpApiEndpoint.post("rebuildVisits", "/sites/:id/visits/rebuild", {
      params: { id: PathId },
      payload: VisitsToRebuild,
      success: RebuiltVisits,
      error: [NotFound.plain, ServiceUnavailable.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make visits from stored events anew")
      .annotate(
        OpenApi.Description,
        "Compares stored visits with what stored events make, day by day, and puts right what differs. Events go on being " +
          "taken meanwhile. One request does some days: `next` says where to go on. It may be repeated at any time."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Rebuild", description: "What was counted, counted again." }))
  .prefix("/api/v1") {}
