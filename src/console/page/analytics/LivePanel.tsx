import type { Realtime } from "#schemas/analytics/Stats.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { withFilter } from "./SiteParams.ts"
import { formatCount, formatCounted } from "../figures/Format.ts"

const pollMillis = 4_000

const nothing: Realtime = {
  visitors: 0,
  pageviews: 0,
  pages: [],
  perMinute: Array.from({ length: 30 }, (_, index) => ({ minute: 29 - index, pageviews: 0 }))
}

/** Visitors on the site now: the figure moves while the tab is visible. */
export const LivePanel = ({ base }: { readonly base: string }) => {
  const { view } = useNavigation()
  const { data } = useAnswer<Realtime>(`${base}/realtime`, pollMillis)
  const { pages, perMinute, visitors } = data ?? nothing
  return (
    <section class="live" aria-labelledby="live-title" aria-busy={data === undefined}>
      <div class="live-figure">
        <h2 id="live-title">
          <span class={`light ${visitors > 0 ? "up" : "off"}`} aria-hidden="true" /> Now
        </h2>
        <p aria-live="polite" aria-atomic="true">
          <strong data-figure="live">{data === undefined ? "–" : formatCount(visitors)}</strong>{" "}
          <span>{visitors === 1 ? "visitor" : "visitors"} in the last 5 minutes</span>
        </p>
      </div>
      <MinuteBars perMinute={perMinute} />
      <ol class="live-pages" aria-label="Pages seen now">
        {pages.map(({ path, visitors }) => (
          <li key={path}>
            <ViewLink to={withFilter(view, "page", path)} title={path}>
              <span class="value">{path}</span> <span class="count">{formatCount(visitors)}</span>
            </ViewLink>
          </li>
        ))}
        {pages.length === 0 && <li class="hint">Nobody is on a page right now.</li>}
      </ol>
    </section>
  )
}

const MinuteBars = ({ perMinute }: Pick<Realtime, "perMinute">) => {
  const most = Math.max(1, ...perMinute.map(({ pageviews }) => pageviews))
  const total = perMinute.reduce((sum, { pageviews }) => sum + pageviews, 0)
  return (
    <figure class="minutes">
      <div
        class="minute-bars"
        role="img"
        aria-label={`${formatCounted(total, "page view")} in the last 30 minutes`}
      >
        {perMinute.map(({ minute, pageviews }) => (
          <span
            key={minute}
            class="minute"
            style={{ height: pageviews === 0 ? "0" : `${Math.max(6, (pageviews / most) * 100)}%` }}
            title={`${minute === 0 ? "this minute" : `${minute} min ago`}: ${formatCount(pageviews)}`}
          />
        ))}
      </div>
      <figcaption class="hint">
        <span>30 min ago</span>
        <span>{formatCounted(total, "page view")}</span>
        <span>now</span>
      </figcaption>
    </figure>
  )
}
