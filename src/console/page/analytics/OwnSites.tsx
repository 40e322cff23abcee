import type { CreatedSite, Site, SiteList } from "#schemas/analytics/Site.ts"
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { Asking } from "../parts/Asking.tsx"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { homeView } from "../view/View.ts"
import { NewSite } from "./NewSite.tsx"
import { siteView } from "./SiteParams.ts"
import { OwnSite } from "./OwnSite.tsx"
import { SharedSite } from "./SharedSite.tsx"

const refreshMillis = 30_000

/** The user's sites: the one in the address bar, the list of them, or how to make the first. */
export const OwnSites = ({ tiles }: { readonly tiles: ComponentChildren }) => {
  const { go, view } = useNavigation()
  const id = view.params.site
  const { data, refused } = useAnswer<typeof SiteList.Encoded>("/api/v1/sites", refreshMillis)
  const [made, setMade] = useState<ReadonlyArray<CreatedSite>>([])
  if (data === undefined) return <Asking what="your sites" isRefused={refused !== undefined} />

  const listed = new Set(data.sites.map(({ id }) => id))
  const sites = [...data.sites, ...made.map(({ site }) => site).filter(({ id }) => !listed.has(id))]
  const onMade = (created: CreatedSite): void => {
    setMade((before) => [...before, created])
    go(siteView(created.site.id))
  }
  if (id === undefined) return <SiteIndex sites={sites} onMade={onMade} tiles={tiles} />

  const site = sites.find((one) => one.id === id)
  if (site === undefined) return <SharedSite key={id} id={id} otherwise={<UnknownSite />} />
  return (
    <OwnSite key={site.id} site={site} secret={made.find((created) => created.site.id === site.id)?.secret} />
  )
}

const UnknownSite = () => (
  <section class="narrow">
    <h1>No such site</h1>
    <p>It is not among your sites, and it is not public.</p>
    <p>
      <ViewLink to={homeView}>All sites</ViewLink>
    </p>
  </section>
)

interface SiteIndexProps {
  readonly tiles: ComponentChildren
  readonly sites: ReadonlyArray<Site>
  onMade(created: CreatedSite): void
}

const SiteIndex = ({ onMade, sites, tiles }: SiteIndexProps) => (
  <div class="entrance">
    {sites.length === 0 ? (
      <NewSite sites={sites} onMade={onMade} isFirst />
    ) : (
      <section>
        <h1>Sites</h1>
        <ul class="links site-list">
          {sites.map((site) => (
            <li key={site.id}>
              <ViewLink to={siteView(site.id)}>
                <strong>{site.name}</strong>
                <span class="hint">{site.domain}</span>
                <span class="hint site-state">{stateOf(site)}</span>
              </ViewLink>
            </li>
          ))}
        </ul>
        <details class="new-site">
          <summary>New site</summary>
          <NewSite sites={sites} onMade={onMade} />
        </details>
      </section>
    )}
    {tiles}
  </div>
)

const stateOf = (site: Site): string => {
  if (site.firstEventAt === null) return "waiting for its first event"
  return site.public ? "public" : ""
}
