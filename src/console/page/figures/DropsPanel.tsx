import type { Drops } from "../api/Contract.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatCount } from "./Format.ts"

const refreshMillis = 60_000

/** Why an event does not count. */
const reasons: Readonly<Record<string, string>> = {
  bot: "Bots and crawlers",
  spam: "Referrer spam",
  hostname: "Pages of another host name",
  duplicate: "Sent twice",
  rate: "Too many from one visitor",
  invalid: "No valid event",
  late: "More than 7 days old"
}

/** What was sent and is in no figure: so that a figure that seems too small can be understood. */
export const DropsPanel = ({ base }: { readonly base: string }) => {
  const { data } = useAnswer<Drops>(`${base}/drops`, refreshMillis)
  const totals = new Map<string, number>()
  for (const { count, reason } of data?.drops ?? []) totals.set(reason, (totals.get(reason) ?? 0) + count)
  const rows = [...totals].sort(([, a], [, b]) => b - a)
  const most = rows[0]?.[1] ?? 0
  return (
    <section class="panel drops" aria-labelledby="drops-title" aria-busy={data === undefined}>
      <header>
        <h2 id="drops-title">Not counted</h2>
        <span class="hint">last 30 days</span>
      </header>
      <div class="panel-columns hint" aria-hidden="true">
        <span>Why</span>
        <span class="count">Events</span>
      </div>
      {data !== undefined && rows.length === 0 && <p class="hint">Everything that was sent is counted.</p>}
      <ol class="rows" aria-label="Events that do not count">
        {rows.map(([reason, count]) => (
          <li key={reason}>
            <div class="row">
              <span class="bar" style={{ width: `${(count / most) * 100}%` }} />
              <span class="value">{reasons[reason] ?? reason}</span>
              <span class="count">{formatCount(count)}</span>
            </div>
          </li>
        ))}
      </ol>
    </section>
  )
}
