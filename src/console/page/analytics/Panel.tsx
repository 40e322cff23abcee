import type { Breakdown } from "#schemas/analytics/Breakdown.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { formatCount, formatShare } from "../figures/Format.ts"
import { dimensionWords, valueLabel } from "./Labels.ts"
import {
  type FilterName,
  isFiltered,
  readQuery,
  unknownValue,
  withFilter,
  withoutFilters
} from "./SiteParams.ts"
import { Tabs } from "../figures/Tabs.tsx"

interface PanelKind {
  readonly name: string
  readonly title: string
  /** the first one is open at first */
  readonly dimensions: readonly [FilterName, ...ReadonlyArray<FilterName>]
}

export const panels: ReadonlyArray<PanelKind> = [
  { name: "pages", title: "Pages", dimensions: ["page", "entry", "exit"] },
  { name: "sources", title: "Sources", dimensions: ["source", "channel", "referrer", "campaign"] },
  { name: "countries", title: "Countries", dimensions: ["country"] },
  { name: "devices", title: "Devices", dimensions: ["browser", "os", "device"] },
  { name: "goals", title: "Goals", dimensions: ["event"] }
]

const [fewRows, manyRows] = [10, 200]
const refreshMillis = 60_000

interface PanelProps {
  /** the reader is not the server's owner */
  readonly isShared: boolean
  readonly panel: PanelKind
  readonly base: string
  /** of the whole period: the base of all shares */
  readonly visitors: number
}

/** Not one value is known. */
const isUnknown = (data: typeof Breakdown.Type | undefined): boolean =>
  data !== undefined && data.rows.length > 0 && data.rows.every(({ value }) => value === null)

const CountriesHint = () => (
  <p class="hint">
    No country is known. Name a database of addresses in the server’s setting <code>GEOIP_DB</code>, or let a
    proxy that it trusts send <code>CF-IPCountry</code>: countries are known from then on.
  </p>
)

/** The values of a dimension, most visitors first; a click on one narrows everything to it. */
export const Panel = ({ base, isShared, panel, visitors }: PanelProps) => {
  const { view } = useNavigation()
  const [limit, setLimit] = useState(fewRows)
  const dimension = panel.dimensions.find((name) => name === view.params[panel.name]) ?? panel.dimensions[0]
  const path = `${base}/breakdown?dimension=${dimension}&limit=${limit}&${readQuery(view)}`
  const { data, isOld } = useAnswer<typeof Breakdown.Type>(path, refreshMillis)
  const title = `${panel.name}-title`
  // Until the answer for another tab is here the list is of the tab before, and filters by that.
  const shown = panel.dimensions.find((name) => name === data?.dimension) ?? dimension
  return (
    <section class="panel" aria-labelledby={title} aria-busy={isOld}>
      <header>
        <h2 id={title}>{panel.title}</h2>
        {panel.dimensions.length > 1 && (
          <Tabs
            param={panel.name}
            label={`${panel.title} by`}
            open={dimension}
            tabs={panel.dimensions.map((name) => ({ name, label: dimensionWords[name].many }))}
          />
        )}
      </header>
      <div class="panel-columns hint" aria-hidden="true">
        <span>{dimensionWords[shown].one}</span>
        {shown === "event" && <span class="count">Fired</span>}
        <span class="count">Visitors</span>
        <span class="share">Share</span>
      </div>
      {data !== undefined && data.rows.length === 0 && <PanelEmpty dimension={shown} />}
      <ol class="rows" aria-label={dimensionWords[shown].many}>
        {data?.rows.map((row) => (
          <Row
            key={row.value ?? unknownValue}
            dimension={shown}
            row={row}
            most={data.rows[0]?.visitors ?? 0}
            visitors={visitors}
          />
        ))}
      </ol>
      {shown === "country" && !isShared && isUnknown(data) && <CountriesHint />}
      {data !== undefined && (data.rows.length >= fewRows || limit > fewRows) && (
        <button
          type="button"
          class="plain more"
          onClick={() => setLimit(limit === fewRows ? manyRows : fewRows)}
        >
          {limit === fewRows ? "More" : "Fewer"}
          <span class="unseen"> {dimensionWords[shown].many}</span>
        </button>
      )}
    </section>
  )
}

interface RowProps {
  readonly dimension: FilterName
  readonly row: (typeof Breakdown.Type)["rows"][number]
  readonly most: number
  readonly visitors: number
}

const Row = ({ dimension, most, row, visitors }: RowProps) => {
  const { view } = useNavigation()
  const isActive = view.params[dimension] === (row.value ?? unknownValue)
  const label = valueLabel(dimension, row.value)
  return (
    <li>
      <ViewLink
        to={isActive ? withoutFilters(view, [dimension]) : withFilter(view, dimension, row.value)}
        isCurrent={isActive}
        title={label}
      >
        <span class="bar" style={{ width: `${most === 0 ? 0 : (row.visitors / most) * 100}%` }} />
        <span class={row.value === null ? "value unknown" : "value"}>
          {label}
          {dimension === "country" && row.value !== null && <span class="hint"> {row.value}</span>}
        </span>
        {dimension === "event" && <Count value={row.count} of="times" />}
        <Count value={row.visitors} of="visitors" />
        <span class="share">{visitors === 0 ? "" : formatShare(row.visitors / visitors)}</span>
      </ViewLink>
    </li>
  )
}

const Count = ({ of, value }: { readonly of: string; readonly value: number }) => (
  <span class="count">
    {formatCount(value)}
    <span class="unseen"> {of},</span>
  </span>
)

/** The text of a list without rows, with the next step if there is one. */
const PanelEmpty = ({ dimension }: { readonly dimension: FilterName }) => {
  const { view } = useNavigation()
  if (isFiltered(view)) return <p class="hint">Nothing passes the filters.</p>
  if (dimension === "event") {
    return (
      <p class="hint">
        No goals yet. Call <code>beacon("Signup")</code> where one is reached, or send an event with a{" "}
        <code>name</code> from your server.
      </p>
    )
  }
  if (dimension === "campaign") {
    return (
      <p class="hint">
        No campaigns. Links that end in <code>?utm_campaign=…</code> are listed here.
      </p>
    )
  }
  return <p class="hint">Nothing in this period.</p>
}
