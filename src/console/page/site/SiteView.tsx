import type { ComponentChildren } from "preact"
import { useEffect, useMemo } from "preact/hooks"
import type { SiteStats } from "../api/Contract.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { Chart } from "../figures/Chart.tsx"
import { DropsPanel } from "../figures/DropsPanel.tsx"
import { formatCounted } from "../figures/Format.ts"
import { FilterChips } from "../figures/FilterChips.tsx"
import { LivePanel } from "../figures/LivePanel.tsx"
import { Panel, panels } from "../figures/Panel.tsx"
import { PeriodBar } from "../figures/PeriodBar.tsx"
import { siteSeries } from "../figures/Series.ts"
import { Tiles } from "../figures/Tiles.tsx"
import { useFocusOnce } from "../parts/UseFocusOnce.ts"
import { useNavigation } from "../view/Navigation.tsx"
import { readQuery } from "../view/View.ts"

interface SiteViewProps {
  readonly site: SiteStats["site"]
  /** the path below which its figures are read */
  readonly base: string
  readonly isShared?: boolean
  readonly onAsk?: (() => void) | undefined
  readonly setup?: ComponentChildren
  readonly welcome?: string | undefined
}

const refreshMillis = 60_000

/** All figures of a site, for the view in the address bar. */
export const SiteView = ({ base, isShared = false, onAsk, setup, site, welcome }: SiteViewProps) => {
  const { view } = useNavigation()
  const stats = useAnswer<SiteStats>(`${base}/stats?${readQuery(view)}`, refreshMillis)
  const heading = useFocusOnce()
  useEffect(() => {
    document.title = `${site.name} · Signalbox`
    return () => {
      document.title = "Signalbox"
    }
  }, [site.name])

  const summary = stats.data?.summary
  const series = useMemo(() => stats.data && siteSeries(stats.data), [stats.data])
  return (
    <>
      <div class="site-heading">
        <h1 ref={heading} tabIndex={-1}>
          {site.name}
        </h1>
        <p class="hint">
          {site.domain} · {site.timezone}
          {isShared && <span class="badge">Shared view</span>}
          {onAsk !== undefined && (
            <button type="button" class="plain" onClick={onAsk}>
              Enter key
            </button>
          )}
        </p>
        {welcome !== undefined && <p role="status">{welcome}</p>}
      </div>
      <LivePanel base={base} />
      <div class="toolbar">
        <PeriodBar />
        <FilterChips />
      </div>
      <p class="unseen" role="status">
        {stats.isOld || summary === undefined
          ? ""
          : `${formatCounted(summary.visitors, "visitor")} in this view`}
      </p>
      <section class="figures" aria-label="Figures of the period" aria-busy={stats.isOld}>
        <Tiles stats={stats.data} />
        <Chart series={series} />
      </section>
      {summary !== undefined && summary.visitors === 0 && !stats.isOld && <NothingHere />}
      <div class="panels">
        {panels.map((panel) => (
          <Panel
            key={panel.name}
            isShared={isShared}
            panel={panel}
            base={base}
            visitors={summary?.visitors ?? 0}
          />
        ))}
        {!isShared && <DropsPanel base={base} />}
      </div>
      {setup}
    </>
  )
}

const NothingHere = () => {
  const { view } = useNavigation()
  const isFiltered = Object.keys(view.filters).length > 0
  return (
    <p class="nothing">
      {isFiltered
        ? "No visit of this period passes the filters. Remove one, or choose a longer period."
        : "No visits in this period. Choose a longer one."}
    </p>
  )
}
