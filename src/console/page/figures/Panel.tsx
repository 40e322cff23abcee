import { useState } from "preact/hooks"
import type { Breakdown, BreakdownRow } from "../api/Contract.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import {
  type FilterName,
  readQuery,
  unknownValue,
  type PanelName,
  withFilter,
  withoutFilter
} from "../view/View.ts"
import { formatCount, formatShare } from "./Format.ts"
import { dimensionWords, valueLabel } from "./Labels.ts"
import { PanelEmpty } from "./PanelEmpty.tsx"
import { Tabs } from "./Tabs.tsx"

interface PanelKind {
  readonly name: PanelName
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
const isUnknown = (data: Breakdown | undefined): boolean =>
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
  const dimension = panel.dimensions.find((name) => name === view.tabs[panel.name]) ?? panel.dimensions[0]
  const path = `${base}/breakdown?dimension=${dimension}&limit=${limit}&${readQuery(view)}`
  const { data, isOld } = useAnswer<Breakdown>(path, refreshMillis)
  const title = `${panel.name}-title`
  // Until the answer for another tab is here the list is of the tab before, and filters by that.
  const shown = panel.dimensions.find((name) => name === data?.dimension) ?? dimension
  return (
    <section class="panel" aria-labelledby={title} aria-busy={isOld}>
      <header>
        <h2 id={title}>{panel.title}</h2>
        {panel.dimensions.length > 1 && (
          <Tabs
            panel={panel.name}
            title={panel.title}
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
  readonly row: BreakdownRow
  readonly most: number
  readonly visitors: number
}

const Row = ({ dimension, most, row, visitors }: RowProps) => {
  const { view } = useNavigation()
  const isActive = view.filters[dimension] === (row.value ?? unknownValue)
  const label = valueLabel(dimension, row.value)
  return (
    <li>
      <ViewLink
        to={isActive ? withoutFilter(view, dimension) : withFilter(view, dimension, row.value)}
        isCurrent={isActive}
        title={label}
      >
        <span class="bar" style={{ width: `${most === 0 ? 0 : (row.visitors / most) * 100}%` }} />
        <span class={row.value === null ? "value unknown" : "value"}>
          {label}
          {dimension === "country" && row.value !== null && <span class="hint"> {row.value}</span>}
        </span>
        {dimension === "event" && (
          <span class="count">
            {formatCount(row.count)}
            <span class="unseen"> times,</span>
          </span>
        )}
        <span class="count">
          {formatCount(row.visitors)}
          <span class="unseen"> visitors,</span>
        </span>
        <span class="share">{visitors === 0 ? "" : formatShare(row.visitors / visitors)}</span>
      </ViewLink>
    </li>
  )
}
