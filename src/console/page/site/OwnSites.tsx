import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import type { CreatedSite, Site, SiteList } from "../api/Contract.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { Asking } from "../parts/Asking.tsx"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { emptyView, type View } from "../view/View.ts"
import { NewSite } from "./NewSite.tsx"
import { OwnSite } from "./OwnSite.tsx"
import { SharedSite } from "./SharedSite.tsx"

const refreshMillis = 30_000

/** The sites of the key's owner: the one in the address bar, the list of them, or how to make the first. */
export const OwnSites = ({ rooms }: { readonly rooms: ComponentChildren }) => {
  const { go, view } = useNavigation()
  const { data, refused } = useAnswer<SiteList>("/api/v1/sites", refreshMillis)
  const [made, setMade] = useState<ReadonlyArray<CreatedSite>>([])
  if (data === undefined) return <Asking what="your sites" isRefused={refused !== undefined} />

  const listed = new Set(data.sites.map(({ id }) => id))
  const sites = [...data.sites, ...made.map(({ site }) => site).filter(({ id }) => !listed.has(id))]
  const onMade = (created: CreatedSite): void => {
    setMade((before) => [...before, created])
    go({ ...emptyView, site: created.site.id })
  }
  if (view.site === undefined) return <SiteIndex sites={sites} onMade={onMade} rooms={rooms} />

  const site = sites.find(({ id }) => id === view.site)
  if (site === undefined) return <SharedSite id={view.site} otherwise={<UnknownSite />} />
  return (
    <OwnSite key={site.id} site={site} secret={made.find((created) => created.site.id === site.id)?.secret} />
  )
}

const UnknownSite = () => (
  <section class="narrow">
    <h1>No such site</h1>
    <p>It is not among this key’s sites, and it is not public.</p>
    <p>
      <ViewLink to={emptyView}>All sites</ViewLink>
    </p>
  </section>
)

interface SiteIndexProps {
  readonly rooms: ComponentChildren
  readonly sites: ReadonlyArray<Site>
  onMade(created: CreatedSite): void
}

const SiteIndex = ({ onMade, rooms, sites }: SiteIndexProps) => (
  <div class="entrance">
    {sites.length === 0 ? (
      <NewSite sites={sites} onMade={onMade} isFirst />
    ) : (
      <section>
        <h1>Sites</h1>
        <ul class="site-list">
          {sites.map((site) => (
            <li key={site.id}>
              <ViewLink to={viewOf(site)}>
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
    {rooms}
  </div>
)

const viewOf = ({ id }: Site): View => ({ ...emptyView, site: id })

const stateOf = (site: Site): string => {
  if (site.firstEventAt === null) return "waiting for its first event"
  return site.public ? "public" : ""
}
