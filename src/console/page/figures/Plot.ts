import uPlot from "uplot"
import type { SiteStats } from "../api/Contract.ts"
import { formatBucket, formatCompact, formatTick } from "./Format.ts"

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
  const plot = new uPlot(optionsOf(place, tick, onIndex), [[], [], []], place)

  const resize = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: heightPixels }))
  resize.observe(place)
  // The canvas has no style rules: it is drawn again when the scheme changes.
  const scheme = matchMedia("(prefers-color-scheme: dark)")
  const redraw = (): void => plot.redraw(false, true)
  scheme.addEventListener("change", redraw)

  return {
    show: (shown) => {
      stats = shown
      const series = shown.timeseries
      plot.setData([
        series.map((_, index) => index),
        series.map(({ visitors }) => visitors),
        series.map(({ pageviews }) => pageviews)
      ])
      place.title = series[0] === undefined ? "" : `From ${formatBucket(series[0].bucket, shown.granularity)}`
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

/** Ticks of counts and of buckets are at whole numbers. */
const wholeSteps = [1, 2, 5]
  .flatMap((digit) => Array.from({ length: 10 }, (_, power) => digit * 10 ** power))
  .sort((a, b) => a - b)
const bucketSteps = [1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 56, 112, 365]

const optionsOf = (
  place: HTMLElement,
  tick: (index: number) => string,
  onIndex: (index: number | undefined) => void
): uPlot.Options => {
  const color = (name: string) => () => getComputedStyle(place).getPropertyValue(name)
  const font = `12px ${getComputedStyle(place).fontFamily}`
  const axis = { stroke: color("--muted"), font, ticks: { show: false } }
  const line = { width: 2, points: { show: (plot: uPlot) => plot.data[0].length < 2 } }
  return {
    width: place.clientWidth,
    height: heightPixels,
    padding: [12, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
    scales: {
      x: { time: false, range: (_plot, min, max) => (min === max ? [min - 1, max + 1] : [min, max]) },
      y: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.08)] }
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 64,
        incrs: bucketSteps,
        values: (_plot, splits) => splits.map(tick)
      },
      {
        ...axis,
        grid: { stroke: color("--line"), width: 1 },
        size: 48,
        space: 44,
        incrs: wholeSteps,
        values: (_plot, splits) => splits.map(formatCompact)
      }
    ],
    series: [
      {},
      { ...line, label: "Visitors", stroke: color("--accent"), fill: color("--accent-wash") },
      { ...line, label: "Page views", stroke: color("--second"), width: 1.5 }
    ],
    hooks: { setCursor: [({ cursor }) => onIndex(cursor.idx ?? undefined)] }
  }
}
