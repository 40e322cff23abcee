import { Schema } from "effect"
import { SiteId } from "../core/Ids.ts"
import { line } from "../core/Text.ts"
import { Day, Timestamp } from "../core/Timestamp.ts"

/** Source: contract/analytics#periods. */
export const PeriodName = Schema.Literals(["today", "24h", "7d", "30d", "90d", "12mo", "custom"])

/** The period of a question. Source: contract/analytics#periods. */
export const periodQuery = {
  period: Schema.optionalKey(PeriodName.annotate({ default: "30d" })),
  from: Schema.optionalKey(
    Day.annotate({
      description: "With `period=custom`: the first day; at most 10 years before the last"
    })
  ),
  to: Schema.optionalKey(Day.annotate({ description: "With `period=custom`: the last day, included" })),
  timezone: Schema.optionalKey(
    line(1, 64).annotate({
      description: "IANA time zone in which days are meant, instead of the site's",
      examples: ["Europe/Berlin"]
    })
  )
}

/**
 * A filter is one value. `!` to exclude and `|` to choose, as elsewhere, would give an empty figure here, so both are
 * refused, `|` where no value has it. Control characters are in no value either.
 */
const filter = (pattern: RegExp, expected: string, description: string) =>
  Schema.optionalKey(
    Schema.String.check(
      Schema.isBetweenLength(1, 2048, { expected: "text of 1 to 2048 characters on one line" }),
      Schema.isPattern(pattern, { expected })
    ).annotate({ description })
  )

// oxlint-disable-next-line no-control-regex
const oneText = /^[^!\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$/u

// oxlint-disable-next-line no-control-regex
const oneName = /^[^!|\u0000-\u001f\u007f][^|\u0000-\u001f\u007f]*$/u

// oxlint-disable-next-line no-control-regex
const onePath = /^(?:[/*](?:[^|\u0000-\u001f\u007f]|\|[^/*\u0000-\u001f\u007f])*|\(none\))$/u

const oneTextExpected = "one value on one line: a filter cannot exclude by `!`"

const textOf = (what: string) =>
  filter(oneText, oneTextExpected, `${what}, or \`(none)\` where it is unknown`)

const filterOf = (what: string) =>
  filter(
    oneName,
    "one value on one line: a filter cannot exclude by `!`, nor choose by `|`",
    `${what}, or \`(none)\` where it is unknown`
  )

const pathOf = (what: string) =>
  filter(
    onePath,
    "one path on one line, from its / on or with * for any text, or (none)",
    `${what} without query string, decoded or as it is in a URL; \`*\` stands for any text, \`(none)\` for visits without page views`
  )

/** Attributes of a visit, its pages and its events. Source: contract/analytics#filters. */
export const filterQuery = {
  page: pathOf("Path"),
  source: filterOf("Name of the source, as the breakdown shows it"),
  country: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^(?:[A-Za-z]{2}|\(none\))$/u, { expected: "an ISO-3166 alpha-2 code or (none)" })
    ).annotate({
      description: "ISO-3166 alpha-2 code, or `(none)` where it is unknown",
      examples: ["DE"]
    })
  ),
  browser: filterOf("Browser"),
  os: filterOf("Operating system"),
  device: Schema.optionalKey(Schema.Literals(["desktop", "mobile", "tablet", "(none)"])),
  campaign: textOf("`utm_campaign`"),
  event: filter(
    oneText,
    oneTextExpected,
    "Visits in which this event fired; `*` stands for any text, `(none)` for visits without events"
  ),
  entry: pathOf("Path of the visit's first page"),
  exit: pathOf("Path of the visit's last page"),
  hostname: filterOf("Host name of the visit's first page"),
  referrer: filterOf("Referring page"),
  channel: filterOf("Kind of source, as the breakdown shows it"),
  medium: textOf("`utm_medium`"),
  term: textOf("`utm_term`"),
  content: textOf("`utm_content`")
}

const StatsFilters = Schema.Struct(filterQuery)
export type StatsFilters = typeof StatsFilters.Type

const Format = Schema.Literals(["json", "csv"])

/** The query of both figures and breakdowns. */
export const questionQuery = {
  ...periodQuery,
  ...filterQuery,
  format: Schema.optionalKey(
    Format.annotate({ description: "`csv`: the rows, after RFC 4180", default: "json" })
  )
}

const StatsQuestion = Schema.Struct({ ...periodQuery, ...filterQuery })
export type StatsQuestion = typeof StatsQuestion.Type

const count = Schema.Int

/** All 0 without visits. Source: contract/analytics#summary. */
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

/** Source: contract/analytics#realtime. */
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
