import type { UsageBucket, UsageOfWindow } from "#schemas/llm/Usage.ts"
import { formatCompact, formatCounted, formatUsd, type Granularity } from "../figures/Format.ts"
import type { Line, Series } from "../figures/Series.ts"

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
  const line = (name: string, of: (bucket: UsageBucket) => number, one: string): Line => ({
    name,
    values: series.map(of),
    inWords: (count) => formatCounted(count, one)
  })
  const common = {
    granularity: granularities[window],
    buckets: series.map(({ bucket }) => bucket),
    isOpen: series.length > 1,
    format: formatCompact,
    isWhole: true
  }
  switch (measure) {
    case "cost": {
      const first = { name: "Cost", values: series.map(({ costUsd }) => costUsd), inWords: formatUsd }
      return { ...common, first, format: formatUsd, isWhole: false }
    }
    case "tokens":
      return { ...common, first: line("Tokens", ({ totalTokens }) => totalTokens, "token") }
    case "requests":
      return {
        ...common,
        first: line("Requests", ({ requests }) => requests, "request"),
        second: line("Errors", ({ errors }) => errors, "error")
      }
  }
}
