import { useMemo } from "preact/hooks"
import type { UsageOfWindow, UsageWindow } from "../api/Contract.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { Chart } from "../figures/Chart.tsx"
import { formatCompact, formatCount, formatInstant, formatUsd } from "../figures/Format.ts"
import { Tabs } from "../figures/Tabs.tsx"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { type UsageWindowName, usageWindows } from "../view/View.ts"
import { TopModels } from "./TopModels.tsx"
import { measures, usageSeries } from "./UsageSeries.ts"

const refreshMillis = 60_000

const words: Readonly<Record<UsageWindowName, string>> = {
  hour: "Hour",
  day: "Day",
  week: "Week",
  month: "Month",
  year: "Year",
  ever: "Ever"
}

/** The owner's usage in one window. */
export const UsagePanel = ({ since }: { readonly since: number }) => {
  const { view } = useNavigation()
  const { data, isOld } = useAnswer<UsageOfWindow>(
    `/api/v1/usage?window=${view.window}`,
    refreshMillis,
    since
  )
  const measure = measures.find(({ name }) => name === view.tabs.usage)?.name ?? measures[0].name
  const series = useMemo(() => data && usageSeries(data, measure), [data, measure])
  return (
    <section class="usage" aria-labelledby="usage-title">
      <h2 id="usage-title">Usage</h2>
      <div class="toolbar">
        <nav class="periods" aria-label="Window">
          <ul>
            {usageWindows.map((name) => (
              <li key={name}>
                <ViewLink to={{ ...view, window: name }} isCurrent={view.window === name}>
                  {words[name]}
                </ViewLink>
              </li>
            ))}
          </ul>
        </nav>
        <Tabs panel="usage" title="Series" tabs={measures} open={measure} />
      </div>
      <div class="figures" aria-busy={isOld}>
        <WindowTiles window={data?.usage[data.window]} />
        <Chart series={series} />
        <TopModels models={data?.topModels} />
      </div>
    </section>
  )
}

const WindowTiles = ({ window }: { readonly window: UsageWindow | undefined }) => (
  <dl class="tiles">
    <Tile name="requests" label="Requests" value={window && formatCount(window.requests)} />
    <Tile name="errors" label="Errors" value={window && formatCount(window.errors)} />
    <Tile name="prompt-tokens" label="Tokens in" value={window && formatCompact(window.promptTokens)} />
    <Tile
      name="completion-tokens"
      label="Tokens out"
      value={window && formatCompact(window.completionTokens)}
    />
    <Tile name="usage-cost" label="Cost" value={window && formatUsd(window.costUsd)} />
    <Tile
      name="resets"
      label="Begins anew"
      value={window && (window.resetsAt === null ? "never" : formatInstant(window.resetsAt))}
    />
  </dl>
)

interface TileProps {
  readonly name: string
  readonly label: string
  readonly value: string | undefined
}

const Tile = ({ label, name, value }: TileProps) => (
  <div class="tile">
    <dt>{label}</dt>
    <dd class={name === "resets" ? "tile-text" : "tile-value"} data-figure={name}>
      {value ?? "–"}
    </dd>
  </div>
)
