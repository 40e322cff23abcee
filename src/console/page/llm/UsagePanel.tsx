import type { UsageOfWindow, UsageWindow } from "#schemas/llm/Usage.ts"
import { useMemo } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { Chart } from "../figures/Chart.tsx"
import { formatCompact, formatCount, formatInstant, formatUsd } from "../figures/Format.ts"
import { Tabs } from "../figures/Tabs.tsx"
import { Table } from "../parts/Table.tsx"
import { Tile } from "../parts/Tile.tsx"
import { useNavigation } from "../view/Navigation.tsx"
import { measures, usageSeries } from "./UsageSeries.ts"

const refreshMillis = 60_000

/** Source: contract/llm#usage. */
const windows = [
  { name: "hour", label: "Hour" },
  { name: "day", label: "Day" },
  { name: "week", label: "Week" },
  { name: "month", label: "Month" },
  { name: "year", label: "Year" },
  { name: "ever", label: "Ever" }
] as const

const usualWindow = "day"

/** The owner's usage in one window. */
export const UsagePanel = ({ since }: { readonly since: number }) => {
  const { view } = useNavigation()
  const open = windows.find(({ name }) => name === view.params.window)?.name ?? usualWindow
  const { data, isOld } = useAnswer<UsageOfWindow>(`/api/v1/usage?window=${open}`, refreshMillis, { since })
  const measure = measures.find(({ name }) => name === view.params.usage)?.name ?? measures[0].name
  const series = useMemo(() => data && usageSeries(data, measure), [data, measure])
  return (
    <section class="usage" aria-labelledby="usage-title">
      <h2 id="usage-title">Usage</h2>
      <div class="toolbar">
        <Tabs param="window" label="Window" isPeriod tabs={windows} open={open} usual={usualWindow} />
        <Tabs param="usage" label="Series by" tabs={measures} open={measure} />
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
    <Tile name="resets" label="Begins anew" isText value={window && resetOf(window)} />
  </dl>
)

const resetOf = ({ resetsAt }: UsageWindow): string => (resetsAt === null ? "never" : formatInstant(resetsAt))

/** The models that cost most. */
const TopModels = ({ models }: { readonly models: UsageOfWindow["topModels"] | undefined }) => {
  const most = Math.max(...(models ?? []).map(({ costUsd }) => costUsd), 0)
  return (
    <Table
      title="Models by cost"
      rows={models}
      keyOf={({ model }) => model}
      columns={[
        {
          title: "Model",
          of: ({ model }) => model,
          share: ({ costUsd }) => (most === 0 ? 0 : costUsd / most)
        },
        { title: "Requests", of: ({ requests }) => formatCount(requests) },
        { title: "Tokens", of: ({ totalTokens }) => formatCompact(totalTokens) },
        { title: "Cost", of: ({ costUsd }) => formatUsd(costUsd) }
      ]}
      empty="No model has answered in this window."
    />
  )
}
