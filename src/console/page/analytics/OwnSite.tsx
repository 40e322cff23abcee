import type { Site } from "#schemas/analytics/Site.ts"
import type { Realtime } from "#schemas/analytics/Stats.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { SiteSetup } from "./SiteSetup.tsx"
import { SiteView } from "./SiteView.tsx"

interface OwnSiteProps {
  readonly site: Site
  /** its secret, where it was made or replaced just now */
  readonly secret: string | undefined
}

/** One's own site: its figures, or the steps to its first one. */
export const OwnSite = ({ secret, site }: OwnSiteProps) => {
  const [isAwaited] = useState(site.firstEventAt === null)
  const hasEvents = useHasEvents(site)
  const setup = <SiteSetup site={site} secret={secret} />
  if (hasEvents) {
    return (
      <SiteView
        site={site}
        base={`/api/v1/sites/${site.id}`}
        setup={
          <details class="setup">
            <summary>Snippet, secret and sharing</summary>
            {setup}
          </details>
        }
        welcome={isAwaited ? "The first event is here." : undefined}
      />
    )
  }
  return (
    <section class="narrow">
      <h1>{site.name}</h1>
      <p class="hint">
        {site.domain} · {site.timezone}
      </p>
      <p class="waiting" role="status">
        <span class="light pulsing" aria-hidden="true" />
        Waiting for the first event. It shows here within seconds.
      </p>
      {setup}
    </section>
  )
}

const pollMillis = 2_000

/** The site's record knows of its first event once it is stored; the realtime figures a moment earlier. */
const useHasEvents = (site: Site): boolean => {
  const [hadEvents, setHadEvents] = useState(site.firstEventAt !== null)
  const { data } = useAnswer<Realtime>(
    hadEvents ? undefined : `/api/v1/sites/${site.id}/realtime`,
    pollMillis
  )
  const hasEvents =
    hadEvents ||
    site.firstEventAt !== null ||
    (data !== undefined && (data.visitors > 0 || data.perMinute.some(({ pageviews }) => pageviews > 0)))
  if (hasEvents && !hadEvents) setHadEvents(true)
  return hasEvents
}
