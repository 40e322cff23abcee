import type { SiteStats, Summary } from "#schemas/analytics/Stats.ts"
import { Tile } from "../parts/Tile.tsx"
import { type Change, pointsFewer, relativeChange } from "./Change.ts"
import { formatCompact, formatCount, formatDecimal, formatDuration } from "../figures/Format.ts"

interface SiteTile {
  readonly field: keyof Summary
  readonly label: string
  format(value: number): string
  change(now: number, before: number): Change | undefined
}

/** From here on a count has no room for all of its digits. */
const longCount = 1_000_000

const formatBigCount = (count: number): string =>
  count < longCount ? formatCount(count) : formatCompact(count)

/** Servers and imported logs do not know how long a page was seen: there is no time then, and not one of 0 s. */
const formatVisible = (seconds: number): string => (seconds === 0 ? "–" : formatDuration(seconds))

const visibleChange = (now: number, before: number): Change | undefined =>
  now === 0 || before === 0 ? undefined : relativeChange(now, before)

const tiles: ReadonlyArray<SiteTile> = [
  { field: "visitors", label: "Visitors", format: formatBigCount, change: relativeChange },
  { field: "visits", label: "Visits", format: formatBigCount, change: relativeChange },
  { field: "pageviews", label: "Page views", format: formatBigCount, change: relativeChange },
  { field: "viewsPerVisit", label: "Views per visit", format: formatDecimal, change: relativeChange },
  {
    field: "bounceRate",
    label: "Bounce rate",
    format: (rate) => `${formatDecimal(rate)}%`,
    change: pointsFewer
  },
  { field: "avgDurationSec", label: "Visible time", format: formatVisible, change: visibleChange }
]

const none: Change = { text: "", verdict: "same" }

/** The summary, each figure beside that of the period before. */
export const Tiles = ({ stats }: { readonly stats: SiteStats | undefined }) => (
  <dl class="tiles">
    {tiles.map(({ change, field, format, label }) => (
      <Tile
        key={field}
        name={field}
        label={label}
        value={stats && format(stats.summary[field])}
        note={
          stats !== undefined && (
            <ChangeText
              // Rates of no visits at all are meaningless zeros.
              change={
                stats.previous.visits === 0 ? undefined : change(stats.summary[field], stats.previous[field])
              }
              before={format(stats.previous[field])}
            />
          )
        }
      />
    ))}
  </dl>
)

interface ChangeTextProps {
  readonly change: Change | undefined
  readonly before: string
}

const ChangeText = ({ before, change = none }: ChangeTextProps) => (
  <span class={change.verdict} title={`${before} in the period before`}>
    {change.text}
    <span class="unseen"> against {before} in the period before</span>
  </span>
)
