import type { SiteStats } from "../api/Contract.ts"
import { formatCompact, formatCounted, type Granularity } from "./Format.ts"

export interface Line {
  readonly name: string
  /** of each bucket */
  readonly values: ReadonlyArray<number>
  /** a value in words, as the readout has it */
  readonly inWords: (value: number) => string
}

/** A time series to be drawn: one line, filled, or two. */
export interface Series {
  readonly granularity: Granularity
  /** their starts, in order */
  readonly buckets: ReadonlyArray<string>
  /** the last bucket is not over yet */
  readonly isOpen: boolean
  readonly first: Line
  readonly second?: Line
  /** for the axis */
  readonly format: (value: number) => string
  /** values are whole numbers */
  readonly isWhole: boolean
}

export const lineNames = ({ first, second }: Series): ReadonlyArray<string> =>
  second === undefined ? [first.name] : [first.name, second.name]

/** One bucket, in words. */
export const wordsAt = ({ first, second }: Series, index: number): string =>
  [first, ...(second === undefined ? [] : [second])]
    .map(({ inWords, values }) => inWords(values[index] ?? 0))
    .join(", ")

const minuteMillis = 60_000
const hourMillis = 60 * minuteMillis

/** The least that a whole bucket lasts: some days have 23 hours. */
const leastMillis: Readonly<Record<Granularity, number>> = {
  minute: minuteMillis,
  hour: hourMillis,
  day: 23 * hourMillis,
  month: 28 * 24 * hourMillis - hourMillis
}

const isLastBucketOpen = ({ granularity, timeseries, to }: SiteStats): boolean => {
  const last = timeseries.at(-1)
  if (last === undefined || timeseries.length < 2) return false
  return Date.parse(to) - Date.parse(last.bucket) < leastMillis[granularity] - 1_000
}

/** Visitors and page views of a site. */
export const siteSeries = (stats: SiteStats): Series => ({
  granularity: stats.granularity,
  buckets: stats.timeseries.map(({ bucket }) => bucket),
  isOpen: isLastBucketOpen(stats),
  first: {
    name: "Visitors",
    values: stats.timeseries.map(({ visitors }) => visitors),
    inWords: (count) => formatCounted(count, "visitor")
  },
  second: {
    name: "Page views",
    values: stats.timeseries.map(({ pageviews }) => pageviews),
    inWords: (count) => formatCounted(count, "page view")
  },
  format: formatCompact,
  isWhole: true
})
