import type { UsageBucket, UsageOfWindow } from "../api/Contract.ts"
import { formatCompact, formatCounted, formatUsd, type Granularity } from "../figures/Format.ts"
import type { Series } from "../figures/Series.ts"

/** The measures of calls that can be drawn; the first is the default. */
export const measures = [
  { name: "requests", label: "Requests" },
  { name: "tokens", label: "Tokens" },
  { name: "cost", label: "Cost" }
] as const

export type Measure = (typeof measures)[number]["name"]

const granularities: Readonly<Record<UsageOfWindow["window"], Granularity>> = {
  hour: "minute",
  day: "hour",
  week: "day",
  month: "day",
  year: "month",
  ever: "month"
}

/** Every series goes on to now: its last bucket is not over. */
export const usageSeries = ({ series, window }: UsageOfWindow, measure: Measure): Series => {
  const of = (value: (bucket: UsageBucket) => number): ReadonlyArray<number> => series.map(value)
  const common = {
    granularity: granularities[window],
    buckets: series.map(({ bucket }) => bucket),
    isOpen: series.length > 1,
    format: formatCompact,
    isWhole: true
  }
  if (measure === "cost") {
    const first = { name: "Cost", values: of(({ costUsd }) => costUsd), inWords: formatUsd }
    return { ...common, first, format: formatUsd, isWhole: false }
  }
  if (measure === "tokens") {
    const inWords = (count: number): string => formatCounted(count, "token")
    return { ...common, first: { name: "Tokens", values: of(({ totalTokens }) => totalTokens), inWords } }
  }
  return {
    ...common,
    first: {
      name: "Requests",
      values: of(({ requests }) => requests),
      inWords: (count) => formatCounted(count, "request")
    },
    second: {
      name: "Errors",
      values: of(({ errors }) => errors),
      inWords: (count) => formatCounted(count, "error")
    }
  }
}
