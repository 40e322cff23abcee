import { Schema } from "effect"
import { integer } from "../core/Text.ts"
import { eventLimits } from "./EventLimits.ts"
import { PeriodName, questionQuery } from "./Stats.ts"

/** Source: contract/analytics#breakdowns. */
export const dimensions = [
  "page",
  "entry",
  "exit",
  "source",
  "referrer",
  "campaign",
  "medium",
  "country",
  "browser",
  "os",
  "device",
  "event",
  "hostname",
  "term",
  "content",
  "channel"
] as const

const propPrefix = "prop:"

/** A name of `dimensions`, or a property of events. */
export const Dimension = Schema.String.check(
  Schema.isPattern(
    new RegExp(`^(?:${dimensions.join("|")}|${propPrefix}[\\s\\S]{1,${eventLimits.propKeyLength}})$`, "u"),
    { expected: `one of ${dimensions.join(", ")} or ${propPrefix}<name>` }
  )
).annotate({
  description: `One of ${dimensions.map((name) => `\`${name}\``).join(", ")}, or \`prop:<name>\`, a property of events`,
  examples: [...dimensions, "prop:plan"]
})

/** The property that a dimension names; undefined for all others. */
export const propOf = (dimension: string): string | undefined =>
  dimension.startsWith(propPrefix) ? dimension.slice(propPrefix.length) : undefined

/** Source: contract/analytics#breakdowns. */
export const breakdownLimit = { default: 10, max: 500 } as const

export const breakdownQuery = {
  dimension: Dimension,
  limit: Schema.optionalKey(
    integer(1, breakdownLimit.max).annotate({ description: "Rows at most", default: breakdownLimit.default })
  ),
  ...questionQuery
}

const BreakdownParameters = Schema.Struct(breakdownQuery)
export type BreakdownParameters = Omit<typeof BreakdownParameters.Type, "format">

const count = Schema.Int

const BreakdownRow = Schema.Struct({
  value: Schema.NullOr(Schema.String).annotate({ description: "null: unknown" }),
  visitors: count.annotate({ description: "Distinct daily identities" }),
  pageviews: count,
  count: count.annotate({
    description: "Page views for `page`, firings for `event`, page views and events for `prop:`, else visits"
  })
})
export type BreakdownRow = typeof BreakdownRow.Type

export const Breakdown = Schema.Struct({
  dimension: Schema.String,
  period: PeriodName,
  filters: Schema.Record(Schema.String, Schema.String),
  rows: Schema.Array(BreakdownRow).annotate({ description: "By visitors, then count, then value" })
}).annotate({ identifier: "Breakdown", description: "The most frequent values of a dimension" })
export type Breakdown = typeof Breakdown.Type
