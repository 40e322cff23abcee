import uPlot from "uplot"
import { formatTick } from "./Format.ts"
import type { Series } from "./Series.ts"

/** The drawing of a time series on a canvas. */
export interface Plot {
  show(series: Series): void
  /** moves the cursor to a bucket, or away */
  pointAt(index: number | undefined): void
  destroy(): void
}

const heightPixels = 240

/** Draws in `place`, as wide as it is, in the page's colours. `onIndex` hears which bucket the cursor is at. */
export const makePlot = (place: HTMLElement, onIndex: (index: number | undefined) => void): Plot => {
  let series: Series | undefined
  const tick = (index: number): string => {
    const bucket = Number.isInteger(index) ? series?.buckets[index] : undefined
    return series === undefined || bucket === undefined ? "" : formatTick(bucket, series.granularity)
  }
  const shown = (): Series | undefined => series
  const plot = new uPlot(optionsOf(place, shown, tick, onIndex), [[], [], [], [], []], place)

  const resize = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: heightPixels }))
  resize.observe(place)
  // The canvas has no style rules: it is drawn again when the scheme changes.
  const scheme = matchMedia("(prefers-color-scheme: dark)")
  const redraw = (): void => plot.redraw(false, true)
  scheme.addEventListener("change", redraw)

  return {
    show: (next) => {
      series = next
      plot.setData(columnsOf(next))
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

/** Places on the x axis, both lines, and both lines' part in a bucket that is not over yet. */
const columnsOf = ({ buckets, first, isOpen, second }: Series): uPlot.AlignedData => {
  const open = isOpen ? buckets.length - 1 : Infinity
  const closedPart = (values: Column): Column => values.map((value, index) => (index < open ? value : null))
  const openPart = (values: Column): Column =>
    values.map((value, index) => (index >= open - 1 ? value : null))
  const other: Column = second?.values ?? buckets.map(() => null)
  const columns = [closedPart(first.values), closedPart(other), openPart(first.values), openPart(other)]
  return [buckets.map((_, index) => index), ...columns.map((column) => [...column])]
}

/** The cursor stands on a bucket, never between two. */
const ontoBucket: uPlot.Cursor.MousePosRefiner = (plot, left, top) =>
  left < 0 ? [left, top] : [plot.valToPos(plot.posToIdx(left), "x"), top]

/** Ticks of counts and of buckets are at whole numbers, those of amounts are not. */
const steps = (from: number): Array<number> =>
  Array.from(
    { length: 45 },
    (_, step) => ([1, 2, 5][step % 3] ?? 1) * Number(`1e${from + Math.floor(step / 3)}`)
  )
const [wholeSteps, fineSteps] = [steps(0), steps(-9)]
const bucketSteps = [1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 56, 112, 365]

/** A little above the highest value, and above zero if all values are. */
const topOf = (max: number, isWhole: boolean): number =>
  isWhole ? Math.max(4, max * 1.08) : max > 0 ? max * 1.08 : 1

const optionsOf = (
  place: HTMLElement,
  shown: () => Series | undefined,
  tick: (index: number) => string,
  onIndex: (index: number | undefined) => void
): uPlot.Options => {
  const color = (name: string) => () => getComputedStyle(place).getPropertyValue(name)
  const font = `12px ${getComputedStyle(place).fontFamily}`
  const axis = { stroke: color("--muted"), font, ticks: { show: false } }
  const points = { show: (plot: uPlot) => plot.data[0].length < 2 }
  const first = { stroke: color("--accent"), fill: color("--accent-wash"), width: 2, points }
  const second = { stroke: color("--second"), width: 1.5, points }
  const open = { dash: [4, 4], points: { show: false } }
  return {
    width: place.clientWidth,
    height: heightPixels,
    padding: [12, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 }, move: ontoBucket },
    scales: {
      x: { time: false, range: (_plot, min, max) => (min === max ? [min - 1, max + 1] : [min, max]) },
      y: { range: (_plot, _min, max) => [0, topOf(max, shown()?.isWhole ?? true)] }
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
        size: (_plot, labels) =>
          Math.max(48, 16 + 7.5 * Math.max(0, ...(labels ?? []).map(({ length }) => length))),
        space: 36,
        incrs: () => (shown()?.isWhole === false ? fineSteps : wholeSteps),
        values: (_plot, splits) => splits.map((split) => shown()?.format(split) ?? "")
      }
    ],
    series: [{}, first, second, { ...first, ...open }, { ...second, ...open }],
    hooks: { setCursor: [({ cursor }) => onIndex(cursor.idx ?? undefined)] }
  }
}
