import { Schema } from "effect"
import { SiteId } from "../core/Ids.ts"
import { line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"

/** Source: spec 2 A, Periods. */
export const PeriodName = Schema.Literals(["today", "24h", "7d", "30d", "90d", "12mo"])

const filter = (description: string) => Schema.optionalKey(line(1, 2048).annotate({ description }))

const filterOf = (what: string) => filter(`${what}, or \`(none)\` where it is unknown`)

/** Source: spec 2 A, Filters; decisions, Analytics. */
export const filterQuery = {
  page: filter("Path without query string; `*` stands for any text"),
  source: filterOf("Name of the source, as the breakdown shows it"),
  country: filterOf("ISO-3166 alpha-2 code"),
  browser: filterOf("Browser"),
  os: filterOf("Operating system"),
  device: Schema.optionalKey(Schema.Literals(["desktop", "mobile", "tablet", "(none)"])),
  campaign: filterOf("`utm_campaign`"),
  event: filter(
    "Visits in which this event fired; `*` stands for any text, `(none)` for visits without events"
  )
}

const count = Schema.Int

/** Source: spec 2 A, Summary metrics; decisions, Analytics (rounding: all 0 without visits). */
export const Summary = Schema.Struct({
  visitors: count.annotate({ description: "Distinct daily identities: the same person on two days is two" }),
  visits: count.annotate({ description: "Where they started" }),
  pageviews: count,
  events: count.annotate({ description: "Custom events" }),
  viewsPerVisit: Schema.Finite,
  bounceRate: Schema.Finite.annotate({ description: "Percentage of visits with one page view and no event" }),
  avgDurationSec: Schema.Finite.annotate({ description: "Visible seconds per visit" })
}).annotate({ identifier: "Summary" })
export type Summary = typeof Summary.Type

export const SeriesEntry = Schema.Struct({
  bucket: Schema.String.annotate({ description: "Its start, with the site's offset" }),
  visitors: count,
  visits: count,
  pageviews: count
})
export type SeriesEntry = typeof SeriesEntry.Type

export const SiteStats = Schema.Struct({
  site: Schema.Struct({ id: SiteId, name: Schema.String, domain: Schema.String, timezone: Schema.String }),
  period: PeriodName,
  from: Timestamp,
  to: Timestamp,
  granularity: Schema.Literals(["hour", "day", "month"]),
  filters: Schema.Record(Schema.String, Schema.String),
  summary: Summary,
  previous: Summary.annotate({ description: "The period of equal length before" }),
  timeseries: Schema.Array(SeriesEntry)
}).annotate({
  identifier: "SiteStats",
  description: "Summary, the period before, and a complete time series"
})
export type SiteStats = typeof SiteStats.Type

/** Source: spec 2 A, Realtime response. */
export const Realtime = Schema.Struct({
  visitors: count.annotate({ description: "In the last 5 minutes" }),
  pageviews: count.annotate({ description: "In the last 5 minutes" }),
  pages: Schema.Array(Schema.Struct({ path: Schema.String, visitors: count })).annotate({
    description: "The 5 pages with most visitors in the last 5 minutes"
  }),
  perMinute: Schema.Array(
    Schema.Struct({ minute: count.annotate({ description: "Minutes ago, 29 to 0" }), pageviews: count })
  )
}).annotate({ identifier: "Realtime", description: "The last minutes" })
export type Realtime = typeof Realtime.Type
