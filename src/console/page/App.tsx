import { useCallback, useMemo, useState } from "preact/hooks"
import type { SiteList } from "./api/Contract.ts"
import { makeAsk } from "./api/Ask.ts"
import { type Session, SessionProvider } from "./api/Session.ts"
import { AgentsRoom } from "./agents/AgentsRoom.tsx"
import { ModelsRoom } from "./models/ModelsRoom.tsx"
import { useTroubles } from "./api/UseTroubles.ts"
import { KeyForm } from "./parts/KeyForm.tsx"
import { PageHeader } from "./parts/PageHeader.tsx"
import { Rooms, RoomsLight } from "./parts/Rooms.tsx"
import { TroubleNote } from "./parts/TroubleNote.tsx"
import { type ReadinessState, useReadiness } from "./parts/UseReadiness.ts"
import { OwnSites } from "./site/OwnSites.tsx"
import { SharedSite } from "./site/SharedSite.tsx"
import { useNavigation } from "./view/Navigation.tsx"
import { emptyView, type RoomName } from "./view/View.ts"

/** When the key is asked for: `where needed`, a public site needs none; `chosen` by a visitor of one. */
type Asking = "where needed" | "chosen" | "first"

const revoked = "The server does not take that key any more. It was revoked, or has expired."

/** The whole page: with a key, its sites and models; without one, a public site or the form for a key. */
export const App = () => {
  const { go, view } = useNavigation()
  const [key, setKey] = useState<string>()
  const [hasSites, setHasSites] = useState(false)
  const [notice, setNotice] = useState<string>()
  const [asking, setAsking] = useState<Asking>("where needed")
  const { report, troubles } = useTroubles()
  const readiness = useReadiness()

  const forget = useCallback((why: string) => {
    setKey(undefined)
    setAsking("first")
    setNotice(why)
  }, [])
  const session = useMemo((): Session => {
    const onUnknownKey = (): void => forget(revoked)
    return { ask: makeAsk(key), hasKey: key !== undefined, onUnknownKey, onTrouble: report }
  }, [key, forget, report])

  const onKey = (typed: string, found: SiteList | undefined): void => {
    setKey(typed)
    setHasSites(found !== undefined)
    setAsking("where needed")
    setNotice(undefined)
    if (found === undefined) return go({ ...view, room: roomWithoutSites(view.room) }, true)
    const [only, ...others] = found.sites
    if (view.room === "sites" && view.site === undefined && only !== undefined && others.length === 0) {
      go({ ...emptyView, site: only.id }, true)
    }
  }

  const doors = key === undefined ? [] : doorsOf(hasSites, readiness.last)
  // A link into a room is followed before the list of rooms is known.
  const room = key === undefined || hasSites ? view.room : roomWithoutSites(view.room)
  const rooms = <Rooms readiness={readiness.now} />
  const onBack = asking === "chosen" ? () => setAsking("where needed") : undefined
  const keyForm = (
    <div class="entrance">
      <KeyForm onKey={onKey} notice={notice} onBack={onBack} />
      {rooms}
    </div>
  )
  const isShared = view.room === "sites" && view.site !== undefined && asking === "where needed"
  const foreign = isShared ? (
    <SharedSite id={view.site ?? ""} otherwise={keyForm} onAsk={() => setAsking("chosen")} />
  ) : (
    keyForm
  )
  const own = { sites: <OwnSites rooms={rooms} />, models: <ModelsRoom />, agents: <AgentsRoom /> }[room]
  return (
    <SessionProvider value={session}>
      <PageHeader
        doors={doors}
        open={room}
        rooms={<RoomsLight readiness={readiness.now} />}
        onForget={() => forget("The key is forgotten.")}
      />
      <TroubleNote troubles={troubles} />
      <main id="main" tabIndex={-1}>
        {key === undefined ? foreign : own}
      </main>
    </SessionProvider>
  )
}

/** A router key opens everything but sites. */
const roomWithoutSites = (room: RoomName): RoomName => (room === "sites" ? "models" : room)

/** The rooms that a key opens: sites need an account key, the others are on every server that runs them. */
const doorsOf = (hasSites: boolean, readiness: ReadinessState["last"]): ReadonlyArray<RoomName> => {
  const components = readiness?.components ?? {}
  return [
    ...(hasSites ? (["sites"] as const) : []),
    ...(!hasSites || "catalogue" in components ? (["models"] as const) : []),
    ...("agents" in components ? (["agents"] as const) : [])
  ]
}
