import { useEffect, useRef, useState } from "preact/hooks"
import { formatBucket } from "./Format.ts"
import { type Plot, makePlot } from "./Plot.ts"
import { lineNames, type Series, wordsAt } from "./Series.ts"

/** A time series. The pointer, or the arrow keys, read one bucket out. */
export const Chart = ({ series }: { readonly series: Series | undefined }) => {
  const [index, setIndex] = useState<number>()
  const { place, plot } = usePlot(series, setIndex)
  const last = (series?.buckets.length ?? 1) - 1
  const bucket = index === undefined ? undefined : series?.buckets[index]
  const readout =
    series !== undefined && index !== undefined && bucket !== undefined
      ? `${formatBucket(bucket, series.granularity)}: ${wordsAt(series, index)}`
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
        {series !== undefined && lineNames(series).map((name) => <Legend key={name} name={name} />)}
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

const Legend = ({ name }: { readonly name: string }) => <span class="series">{name}</span>

/** The index to which a key moves; undefined for other keys. */
const target = (key: string, index: number | undefined, last: number): number | undefined => {
  if (key === "ArrowLeft" || key === "ArrowDown") return Math.max(0, (index ?? last + 1) - 1)
  if (key === "ArrowRight" || key === "ArrowUp") return Math.min(last, (index ?? -1) + 1)
  if (key === "Home") return 0
  return key === "End" ? last : undefined
}

/** Keeps one plot in its place: new figures, another width and another colour scheme change it where it is. */
const usePlot = (series: Series | undefined, onIndex: (index: number | undefined) => void) => {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | undefined>(undefined)
  useEffect(() => {
    if (place.current === null) return
    plot.current = makePlot(place.current, onIndex)
    return () => plot.current?.destroy()
  }, [onIndex])
  useEffect(() => {
    if (series !== undefined) plot.current?.show(series)
  }, [series])
  return { place, plot }
}
