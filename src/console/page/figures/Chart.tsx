import { useEffect, useRef, useState } from "preact/hooks"
import type { SiteStats } from "../api/Contract.ts"
import { formatBucket, formatCounted } from "./Format.ts"
import { type Plot, makePlot } from "./Plot.ts"

/** Visitors and page views over the period. The pointer, or the arrow keys, read one bucket out. */
export const Chart = ({ stats }: { readonly stats: SiteStats | undefined }) => {
  const [index, setIndex] = useState<number>()
  const { place, plot } = usePlot(stats, setIndex)
  const last = (stats?.timeseries.length ?? 1) - 1
  const at = index === undefined ? undefined : stats?.timeseries[index]
  const readout =
    stats !== undefined && at !== undefined
      ? `${formatBucket(at.bucket, stats.granularity)}: ${formatCounted(at.visitors, "visitor")}, ${formatCounted(at.pageviews, "page view")}`
      : undefined

  const onKeyDown = (event: KeyboardEvent): void => {
    const to = target(event.key, index, last)
    if (to === undefined) return
    event.preventDefault()
    plot.current?.pointAt(to)
  }
  return (
    <figure class="chart">
      <figcaption>
        <span class="series visitors">Visitors</span>
        <span class="series pageviews">Page views</span>
        <span class="readout" data-figure="readout">
          {readout}
        </span>
      </figcaption>
      <div
        ref={place}
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label="Time series; the arrow keys read it"
        aria-orientation="horizontal"
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={index ?? last}
        aria-valuetext={readout ?? "nothing chosen"}
        onKeyDown={onKeyDown}
        onBlur={() => plot.current?.pointAt(undefined)}
      />
    </figure>
  )
}

/** Where a key leads; undefined for keys that lead nowhere. */
const target = (key: string, index: number | undefined, last: number): number | undefined => {
  if (key === "ArrowLeft" || key === "ArrowDown") return Math.max(0, (index ?? last + 1) - 1)
  if (key === "ArrowRight" || key === "ArrowUp") return Math.min(last, (index ?? -1) + 1)
  if (key === "Home") return 0
  return key === "End" ? last : undefined
}

/** Keeps one plot in its place: new figures, another width and another colour scheme change it where it is. */
const usePlot = (stats: SiteStats | undefined, onIndex: (index: number | undefined) => void) => {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | undefined>(undefined)
  useEffect(() => {
    if (place.current === null) return
    plot.current = makePlot(place.current, onIndex)
    return () => plot.current?.destroy()
  }, [onIndex])
  useEffect(() => {
    if (stats !== undefined) plot.current?.show(stats)
  }, [stats])
  return { place, plot }
}
