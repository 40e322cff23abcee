import type { ComponentChildren } from "preact"
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { outsider, type Session, SessionProvider } from "./api/Session.ts"
import { useTroubles } from "./api/UseTroubles.ts"
import type { Access } from "./parts/Access.ts"
import { AccountMenu } from "./parts/AccountMenu.tsx"
import { LoginLink } from "./parts/LoginLink.tsx"
import { PageHeader } from "./parts/PageHeader.tsx"
import { RoomsLight, RoomTiles } from "./parts/RoomTiles.tsx"
import { SignInForm } from "./parts/SignInForm.tsx"
import { TroubleNote } from "./parts/TroubleNote.tsx"
import { type ReadinessState, useReadiness } from "./parts/UseReadiness.ts"
import { type SignIn, useSignIn } from "./parts/UseSignIn.ts"
import { useNavigation } from "./view/Navigation.tsx"
import { type PagedRoom, roomAt, type Rooms } from "./view/Rooms.ts"

interface AppProps {
  readonly rooms: Rooms
  /** of the login link that the page was opened by */
  readonly ticket: string | undefined
}

/** The whole page: signed in, the rooms that are open; otherwise a login link, a shared page or the form to sign in. */
export const App = ({ rooms, ticket: given }: AppProps) => {
  const { go, view } = useNavigation()
  const [ticket, setTicket] = useState(given)
  const { report, troubles } = useTroubles()
  const readiness = useReadiness()
  const named = roomAt(rooms, view.room)
  const onOpened = ({ answer, closed, opened: { name, page } }: Access): void => {
    if (closed.includes(named)) return go({ room: page.path, params: {} }, true)
    const landing = name === named.name ? page.probe?.landing?.(answer, view) : undefined
    if (landing !== undefined) return go(landing, true)
    // A password manager sees that the form has done its work.
    history.replaceState(null, "", location.href)
  }
  const signIn = useSignIn({ rooms: rooms.paged, onOpened, onTrouble: report })
  const { phase, opened } = signIn.state
  const outside = useMemo((): Session => ({ ...outsider, onTrouble: report }), [report])
  const { onSignedOut } = signIn
  const ask = opened?.ask
  const userId = opened?.user?.id
  const session = useMemo(
    (): Session => (ask === undefined ? outside : { ...outside, ask, isSignedIn: true, userId, onSignedOut }),
    [ask, outside, userId, onSignedOut]
  )

  // A link into a room is followed before the list of rooms is known.
  const room = opened?.access.closed.includes(named) === true ? opened.access.opened : named
  const { Page } = room.page
  const tiles = <RoomTiles rooms={rooms.tiled} readiness={readiness.now} />
  const isIn = phase === "in" && ticket === undefined
  useFocusOnReturn(phase)
  return (
    <SessionProvider value={session}>
      <PageHeader
        doors={isIn ? doorsOf(rooms.paged, opened.access, readiness.last) : []}
        open={room}
        light={<RoomsLight rooms={rooms.tiled} readiness={readiness.now} />}
        account={isIn && <AccountMenu user={opened.user} onLeave={signIn.leave} />}
      />
      <TroubleNote troubles={troubles} />
      <main id="main" tabIndex={-1}>
        {!isIn && (
          <SessionProvider value={outside}>
            {ticket === undefined ? (
              <Entrance {...{ room, rooms, signIn, tiles }} />
            ) : (
              <LoginLink ticket={ticket} enter={signIn.enter} onLeave={() => setTicket(undefined)} />
            )}
          </SessionProvider>
        )}
        {opened !== undefined && (
          <div key={opened.user?.id} hidden={!isIn}>
            <Page tiles={tiles} />
          </div>
        )}
      </main>
    </SessionProvider>
  )
}

/** The page behind the form is shown again: keyboard users go on in it. */
const useFocusOnReturn = (phase: SignIn["state"]["phase"]): void => {
  const before = useRef(phase)
  useEffect(() => {
    if (before.current === "ended" && phase === "in") document.getElementById("main")?.focus()
    before.current = phase
  }, [phase])
}

interface EntranceProps {
  readonly rooms: Rooms
  readonly room: PagedRoom
  readonly tiles: ComponentChildren
  readonly signIn: SignIn
}

/** The page without a user: a shared one needs none, unless its reader chooses to sign in, or had a session. */
const Entrance = ({ room, rooms, signIn, tiles }: EntranceProps) => {
  const [isChosen, setChosen] = useState(false)
  const { enter, enterByKey, state } = signIn
  if (state.phase === "starting") return <p class="hint quiet late">Asking for your session …</p>
  const { Shared } = room.page
  const question = (
    <div class="entrance">
      <SignInForm
        {...{ enter, enterByKey }}
        rooms={rooms.paged}
        notice={state.notice}
        email={state.opened?.user?.email}
        onBack={isChosen ? () => setChosen(false) : undefined}
      />
      {tiles}
    </div>
  )
  if (Shared === undefined || isChosen || state.notice !== undefined) return question
  return <Shared otherwise={question} onAsk={() => setChosen(true)} />
}

/** The rooms that are open to the user: the one that said so, and those on this server that did not refuse. */
const doorsOf = (
  rooms: ReadonlyArray<PagedRoom>,
  { closed, opened }: Access,
  readiness: ReadinessState["last"]
): ReadonlyArray<PagedRoom> => {
  const components = readiness?.components ?? {}
  return rooms.filter(
    (room) =>
      room === opened || (!closed.includes(room) && room.tile.components.some((name) => name in components))
  )
}
