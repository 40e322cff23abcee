import type { BotCategory, DropReason, Drops } from "#schemas/analytics/Drops.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { useNavigation } from "../view/Navigation.tsx"
import { formatCount } from "../figures/Format.ts"
import { Tabs } from "../figures/Tabs.tsx"

const refreshMillis = 60_000
const rowsMax = 12

/** The reason why an event does not count. */
const reasons: Readonly<Record<DropReason, string>> = {
  bot: "Bots and crawlers",
  spam: "Referrer spam",
  hostname: "Pages of another host name",
  duplicate: "Sent twice",
  rate: "Too many from one visitor or address",
  invalid: "No valid event",
  late: "More than 7 days old",
  property: "Counted without a property"
}

/** Purposes of bots. */
const categories: Readonly<Record<BotCategory, string>> = {
  search: "search engine",
  ai: "AI",
  seo: "SEO",
  ads: "advertising",
  preview: "link preview",
  feed: "feed reader",
  monitor: "monitoring",
  archive: "archive",
  security: "security",
  library: "program",
  browser: "unattended browser",
  other: ""
}

interface DropRow {
  readonly label: string
  readonly hint?: string
  readonly count: number
}

const tabs = [
  { name: "reasons", label: "Reasons" },
  { name: "bots", label: "Bots" }
] as const

/** Events that were sent but are in no figure: they explain a figure that seems too small. */
export const DropsPanel = ({ base }: { readonly base: string }) => {
  const { view } = useNavigation()
  const { data } = useAnswer<typeof Drops.Type>(`${base}/drops`, refreshMillis)
  const open = view.params.drops === "bots" ? "bots" : "reasons"
  const rows = (open === "bots" ? byBot : byReason)(data?.drops ?? [])
  const most = rows[0]?.count ?? 0
  return (
    <section class="panel" aria-labelledby="drops-title" aria-busy={data === undefined}>
      <header>
        <h2 id="drops-title">Not counted</h2>
        <Tabs param="drops" label="Not counted by" tabs={tabs} open={open} />
      </header>
      <div class="panel-columns hint" aria-hidden="true">
        <span>In the last 30 days</span>
        <span class="count">Events</span>
      </div>
      {data !== undefined && rows.length === 0 && (
        <p class="hint">{open === "bots" ? "No bot was seen." : "Everything that was sent is counted."}</p>
      )}
      <ol class="rows" aria-label="Events that do not count">
        {rows.map(({ count, hint, label }) => (
          <li key={label}>
            <div class="row">
              <span class="bar" style={{ width: `${(count / most) * 100}%` }} />
              <span class="value">
                {label} {hint !== undefined && <span class="hint">{hint}</span>}
              </span>
              <span class="count">{formatCount(count)}</span>
            </div>
          </li>
        ))}
      </ol>
    </section>
  )
}

const byReason = (drops: (typeof Drops.Type)["drops"]): ReadonlyArray<DropRow> =>
  mostFirst(drops.map(({ count, reason }) => ({ label: reasons[reason] ?? reason, count })))

const byBot = (drops: (typeof Drops.Type)["drops"]): ReadonlyArray<DropRow> =>
  mostFirst(
    drops.flatMap(({ bot, count }) =>
      bot === null ? [] : [{ label: bot.name, hint: categories[bot.category] ?? bot.category, count }]
    )
  )

/** Rows of the same name as one. */
const mostFirst = (rows: ReadonlyArray<DropRow>): ReadonlyArray<DropRow> => {
  const totals = new Map<string, DropRow>()
  for (const row of rows) {
    totals.set(row.label, { ...row, count: row.count + (totals.get(row.label)?.count ?? 0) })
  }
  return [...totals.values()].sort((a, b) => b.count - a.count).slice(0, rowsMax)
}
