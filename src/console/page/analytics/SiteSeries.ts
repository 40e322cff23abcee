import type { SiteStats } from "#schemas/analytics/Stats.ts"
import { formatCompact, formatCounted, type Granularity } from "../figures/Format.ts"
import type { Series } from "../figures/Series.ts"

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
