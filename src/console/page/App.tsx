import { useCallback, useMemo, useState } from "preact/hooks"
import type { SiteList } from "./api/Contract.ts"
import { makeAsk, type Refused } from "./api/Ask.ts"
import { type Session, SessionProvider } from "./api/Session.ts"
import { KeyForm } from "./parts/KeyForm.tsx"
import { PageHeader } from "./parts/PageHeader.tsx"
import { Rooms, RoomsLight } from "./parts/Rooms.tsx"
import { TroubleNote } from "./parts/TroubleNote.tsx"
import { useReadiness } from "./parts/UseReadiness.ts"
import { OwnSites } from "./site/OwnSites.tsx"
import { SharedSite } from "./site/SharedSite.tsx"
import { useNavigation } from "./view/Navigation.tsx"
import { emptyView } from "./view/View.ts"

/** When the key is asked for: `where needed`, a public site needs none; `chosen` by somebody who was at one. */
type Asking = "where needed" | "chosen" | "first"

/** The whole page: whoever has given a key sees their sites; whoever has not, a public site or the question for one. */
export const App = () => {
  const { go, view } = useNavigation()
  const [key, setKey] = useState<string>()
  const [notice, setNotice] = useState<string>()
  const [asking, setAsking] = useState<Asking>("where needed")
  const { report, troubles } = useTroubles()
  const readiness = useReadiness()

  const onUnknownKey = useCallback(() => {
    setKey(undefined)
    setAsking("first")
    setNotice("The server does not take that key any more. It was revoked, or has expired.")
  }, [])
  const session = useMemo(
    (): Session => ({ ask: makeAsk(key), hasKey: key !== undefined, onUnknownKey, onTrouble: report }),
    [key, onUnknownKey, report]
  )

  const onKey = (typed: string, { sites }: SiteList): void => {
    setKey(typed)
    setAsking("where needed")
    setNotice(undefined)
    const [only, ...others] = sites
    if (view.site === undefined && only !== undefined && others.length === 0) {
      go({ ...emptyView, site: only.id }, true)
    }
  }
  const forget = (): void => {
    setKey(undefined)
    setAsking("first")
    setNotice("The key is forgotten.")
  }

  const rooms = <Rooms readiness={readiness} />
  const keyForm = (
    <div class="entrance">
      <KeyForm
        onKey={onKey}
        notice={notice}
        onBack={asking === "chosen" ? () => setAsking("where needed") : undefined}
      />
      {rooms}
    </div>
  )
  const body =
    key !== undefined ? (
      <OwnSites rooms={rooms} />
    ) : view.site !== undefined && asking === "where needed" ? (
      <SharedSite id={view.site} otherwise={keyForm} onAsk={() => setAsking("chosen")} />
    ) : (
      keyForm
    )
  return (
    <SessionProvider value={session}>
      <PageHeader hasKey={key !== undefined} rooms={<RoomsLight readiness={readiness} />} onForget={forget} />
      <TroubleNote troubles={troubles} />
      <main id="main">{body}</main>
    </SessionProvider>
  )
}

/** What parts of the page wait for, by part. */
const useTroubles = () => {
  const [troubles, setTroubles] = useState<ReadonlyMap<string, Refused>>(new Map())
  const report = useCallback((part: string, trouble: Refused | undefined): void => {
    setTroubles((before) => {
      if (before.get(part) === trouble) return before
      const after = new Map(before)
      if (trouble === undefined) after.delete(part)
      else after.set(part, trouble)
      return after
    })
  }, [])
  return { troubles, report }
}
