import uPlot from "uplot"
import type { SiteStats } from "../api/Contract.ts"
import { formatCompact, formatTick } from "./Format.ts"

/** The drawing of a time series on a canvas. */
export interface Plot {
  show(stats: SiteStats): void
  /** moves the cursor to a bucket, or away */
  pointAt(index: number | undefined): void
  destroy(): void
}

const heightPixels = 240

/** Draws in `place`, as wide as it is, in the page's colours. `onIndex` hears which bucket the cursor is at. */
export const makePlot = (place: HTMLElement, onIndex: (index: number | undefined) => void): Plot => {
  let stats: SiteStats | undefined
  const tick = (index: number): string => {
    const bucket = Number.isInteger(index) ? stats?.timeseries[index]?.bucket : undefined
    return stats === undefined || bucket === undefined ? "" : formatTick(bucket, stats.granularity)
  }
  const plot = new uPlot(optionsOf(place, tick, onIndex), [[], [], [], [], []], place)

  const resize = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: heightPixels }))
  resize.observe(place)
  // The canvas has no style rules: it is drawn again when the scheme changes.
  const scheme = matchMedia("(prefers-color-scheme: dark)")
  const redraw = (): void => plot.redraw(false, true)
  scheme.addEventListener("change", redraw)

  return {
    show: (shown) => {
      stats = shown
      plot.setData(columnsOf(shown))
    },
    pointAt: (index) =>
      plot.setCursor(
        index === undefined
          ? { left: -10, top: -10 }
          : { left: plot.valToPos(index, "x"), top: heightPixels / 2 }
      ),
    destroy: () => {
      scheme.removeEventListener("change", redraw)
      resize.disconnect()
      plot.destroy()
    }
  }
}

type Column = ReadonlyArray<number | null>

/** Places on the x axis, visitors, page views, and of both the way into a bucket that is not over yet. */
const columnsOf = (stats: SiteStats): uPlot.AlignedData => {
  const series = stats.timeseries
  const open = isLastBucketOpen(stats) ? series.length - 1 : Infinity
  const closedPart = (values: Column): Column => values.map((value, index) => (index < open ? value : null))
  const openPart = (values: Column): Column =>
    values.map((value, index) => (index >= open - 1 ? value : null))
  const visitors = series.map((entry) => entry.visitors)
  const pageviews = series.map((entry) => entry.pageviews)
  const columns: ReadonlyArray<Column> = [
    closedPart(visitors),
    closedPart(pageviews),
    openPart(visitors),
    openPart(pageviews)
  ]
  return [series.map((_, index) => index), ...columns.map((column) => [...column])]
}

const hourMillis = 3_600_000

/** The least that a whole bucket lasts: some days have 23 hours. */
const leastMillis = { hour: hourMillis, day: 23 * hourMillis, month: 28 * 24 * hourMillis - hourMillis }

const isLastBucketOpen = ({ granularity, timeseries, to }: SiteStats): boolean => {
  const last = timeseries.at(-1)
  if (last === undefined || timeseries.length < 2) return false
  return Date.parse(to) - Date.parse(last.bucket) < leastMillis[granularity] - 1_000
}

/** The cursor stands on a bucket, never between two. */
const ontoBucket: uPlot.Cursor.MousePosRefiner = (plot, left, top) =>
  left < 0 ? [left, top] : [plot.valToPos(plot.posToIdx(left), "x"), top]

/** Ticks of counts and of buckets are at whole numbers. */
const wholeSteps = Array.from(
  { length: 30 },
  (_, step) => ([1, 2, 5][step % 3] ?? 1) * 10 ** Math.floor(step / 3)
)
const bucketSteps = [1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 56, 112, 365]

const optionsOf = (
  place: HTMLElement,
  tick: (index: number) => string,
  onIndex: (index: number | undefined) => void
): uPlot.Options => {
  const color = (name: string) => () => getComputedStyle(place).getPropertyValue(name)
  const font = `12px ${getComputedStyle(place).fontFamily}`
  const axis = { stroke: color("--muted"), font, ticks: { show: false } }
  const points = { show: (plot: uPlot) => plot.data[0].length < 2 }
  const visitors = { stroke: color("--accent"), fill: color("--accent-wash"), width: 2, points }
  const pageviews = { stroke: color("--second"), width: 1.5, points }
  const open = { dash: [4, 4], points: { show: false } }
  return {
    width: place.clientWidth,
    height: heightPixels,
    padding: [12, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 }, move: ontoBucket },
    scales: {
      x: { time: false, range: (_plot, min, max) => (min === max ? [min - 1, max + 1] : [min, max]) },
      y: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.08)] }
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        gap: 8,
        space: 64,
        incrs: bucketSteps,
        values: (_plot, splits) => splits.map(tick)
      },
      {
        ...axis,
        grid: { stroke: color("--line"), width: 1 },
        size: 48,
        space: 36,
        incrs: wholeSteps,
        values: (_plot, splits) => splits.map(formatCompact)
      }
    ],
    series: [{}, visitors, pageviews, { ...visitors, ...open }, { ...pageviews, ...open }],
    hooks: { setCursor: [({ cursor }) => onIndex(cursor.idx ?? undefined)] }
  }
}
