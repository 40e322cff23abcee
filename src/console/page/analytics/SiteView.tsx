import type { SiteStats } from "#schemas/analytics/Stats.ts"
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { Chart } from "../figures/Chart.tsx"
import { DropsPanel } from "./DropsPanel.tsx"
import { formatCounted } from "../figures/Format.ts"
import { FilterChips } from "./FilterChips.tsx"
import { LivePanel } from "./LivePanel.tsx"
import { Panel, panels } from "./Panel.tsx"
import { PeriodBar } from "./PeriodBar.tsx"
import { siteSeries } from "./SiteSeries.ts"
import { Tiles } from "./Tiles.tsx"
import { Heading } from "../parts/Heading.tsx"
import { useNavigation } from "../view/Navigation.tsx"
import { isFiltered, readQuery } from "./SiteParams.ts"

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

  const summary = stats.data?.summary
  const series = useMemo(() => stats.data && siteSeries(stats.data), [stats.data])
  return (
    <>
      <div class="site-heading">
        <Heading>{site.name}</Heading>
        <p class="hint">
          {site.domain} · {site.timezone}
          {isShared && <span class="badge">Shared view</span>}
          {onAsk !== undefined && (
            <button type="button" class="plain" onClick={onAsk}>
              Sign in
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
  return (
    <p class="nothing">
      {isFiltered(view)
        ? "No visit of this period passes the filters. Remove one, or choose a longer period."
        : "No visits in this period. Choose a longer one."}
    </p>
  )
}
