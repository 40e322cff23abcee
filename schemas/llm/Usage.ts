import { Schema } from "effect"
import { Timestamp } from "../core/Timestamp.ts"

/** Source: contract/llm#usage. */
export const UsageWindowName = Schema.Literals(["hour", "day", "week", "month", "year", "ever"])
export type UsageWindowName = typeof UsageWindowName.Type

export const UsageSource = Schema.Literals(["api", "agent"])
export type UsageSource = typeof UsageSource.Type

export const usageQuery = {
  window: Schema.optionalKey(
    UsageWindowName.annotate({
      description: "Only this window, with a series and the models that cost most"
    })
  ),
  source: Schema.optionalKey(
    UsageSource.annotate({ description: "Only calls of the API, or only those of agent sessions" })
  )
}

const UsageParameters = Schema.Struct(usageQuery)
export type UsageParameters = typeof UsageParameters.Type

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const usd = Schema.Finite.annotate({ description: "USD, charged to the credits" })

/** Calendar-aligned in UTC, the week from Monday. Source: contract/llm#usage. */
export const UsageWindow = Schema.Struct({
  window: UsageWindowName,
  requests: count.annotate({ description: "Finished calls: successes and errors" }),
  successes: count.annotate({ description: "Answered to the end" }),
  errors: count.annotate({ description: "Refused, failed or broken off" }),
  promptTokens: count,
  completionTokens: count,
  totalTokens: count,
  costUsd: usd,
  since: Timestamp,
  resetsAt: Schema.NullOr(Timestamp).annotate({ description: "null for `ever`" })
}).annotate({ identifier: "UsageWindow" })
export type UsageWindow = typeof UsageWindow.Type

/** Source: contract/llm#usage. */
export const UsageCredits = Schema.Struct({
  balanceUsd: Schema.Finite,
  lifetimeToppedUpUsd: Schema.Finite,
  lifetimeSpentUsd: Schema.Finite
}).annotate({ identifier: "UsageCredits" })
export type UsageCredits = typeof UsageCredits.Type

const sums = { requests: count, errors: count, totalTokens: count, costUsd: usd }

export const UsageBucket = Schema.Struct({
  bucket: Timestamp.annotate({ description: "Its start" }),
  ...sums
}).annotate({ identifier: "UsageBucket" })
export type UsageBucket = typeof UsageBucket.Type

export const UsedModel = Schema.Struct({
  model: Schema.String.annotate({ description: "That answered last, or where none did was tried last" }),
  ...sums
}).annotate({ identifier: "UsedModel" })
export type UsedModel = typeof UsedModel.Type

/** Every window, as the answer without `window` has it. */
export const UsageOverview = Schema.Struct({
  usage: Schema.Struct({
    hour: UsageWindow,
    day: UsageWindow,
    week: UsageWindow,
    month: UsageWindow,
    year: UsageWindow,
    ever: UsageWindow
  }),
  credits: UsageCredits
}).annotate({ identifier: "UsageOverview", description: "All windows, and the credits" })
export type UsageOverview = typeof UsageOverview.Type

/** Source: contract/llm#usage. */
export const UsageOfWindow = Schema.Struct({
  window: UsageWindowName,
  usage: Schema.Record(Schema.String, UsageWindow).annotate({
    description: "Keyed by the window's name"
  }),
  series: Schema.Array(UsageBucket).annotate({
    description:
      "Up to now and without gaps: minutes of an hour, hours of a day, days of a week or month, months otherwise"
  }),
  topModels: Schema.Array(UsedModel).annotate({ description: "The 10 that cost most" })
}).annotate({ identifier: "UsageOfWindow", description: "One window, its series and its models" })
export type UsageOfWindow = typeof UsageOfWindow.Type
