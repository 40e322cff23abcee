import type { ComponentChildren } from "preact"
import { useCallback, useMemo, useState } from "preact/hooks"
import { makeAsk } from "./api/Ask.ts"
import { type Session, SessionProvider } from "./api/Session.ts"
import { useTroubles } from "./api/UseTroubles.ts"
import type { Access } from "./parts/Access.ts"
import { KeyForm } from "./parts/KeyForm.tsx"
import { PageHeader } from "./parts/PageHeader.tsx"
import { RoomsLight, RoomTiles } from "./parts/RoomTiles.tsx"
import { TroubleNote } from "./parts/TroubleNote.tsx"
import { type ReadinessState, useReadiness } from "./parts/UseReadiness.ts"
import { useNavigation } from "./view/Navigation.tsx"
import { type PagedRoom, roomAt, type Rooms } from "./view/Rooms.ts"

/** When the key is asked for: `where needed`, a shared page needs none; `chosen` by a visitor of one. */
type Asking = "where needed" | "chosen" | "first"

const revoked = "The server does not take that key any more. It was revoked, or has expired."

/** The whole page: with a key, the rooms that it opens; without one, a shared page or the form for a key. */
export const App = ({ rooms }: { readonly rooms: Rooms }) => {
  const { go, view } = useNavigation()
  const [access, setAccess] = useState<Access>()
  const [notice, setNotice] = useState<string>()
  const [asking, setAsking] = useState<Asking>("where needed")
  const { report, troubles } = useTroubles()
  const readiness = useReadiness()
  const key = access?.key

  const forget = useCallback((why: string) => {
    setAccess(undefined)
    setAsking("first")
    setNotice(why)
  }, [])
  const session = useMemo((): Session => {
    const onUnknownKey = (): void => forget(revoked)
    return { ask: makeAsk(key), hasKey: key !== undefined, onUnknownKey, onTrouble: report }
  }, [key, forget, report])

  const named = roomAt(rooms, view.room)
  const onAccess = (given: Access): void => {
    setAccess(given)
    setAsking("where needed")
    setNotice(undefined)
    const { page } = given.opened
    if (given.closed.includes(named)) return go({ room: page.path, params: {} }, true)
    const landing = given.opened === named ? page.probe?.landing?.(given.answer, view) : undefined
    if (landing !== undefined) go(landing, true)
  }

  // A link into a room is followed before the list of rooms is known.
  const room = access?.closed.includes(named) === true ? access.opened : named
  const { Page } = room.page
  const tiles = <RoomTiles rooms={rooms.tiled} readiness={readiness.now} />
  return (
    <SessionProvider value={session}>
      <PageHeader
        doors={access === undefined ? [] : doorsOf(rooms.paged, access, readiness.last)}
        open={room}
        light={<RoomsLight rooms={rooms.tiled} readiness={readiness.now} />}
        onForget={() => forget("The key is forgotten.")}
      />
      <TroubleNote troubles={troubles} />
      <main id="main" tabIndex={-1}>
        {access === undefined ? (
          <Entrance {...{ asking, notice, onAccess, room, rooms, tiles }} onAsking={setAsking} />
        ) : (
          <Page tiles={tiles} />
        )}
      </main>
    </SessionProvider>
  )
}

interface EntranceProps {
  readonly rooms: Rooms
  readonly room: PagedRoom
  readonly tiles: ComponentChildren
  readonly notice: string | undefined
  readonly asking: Asking
  onAsking(asking: Asking): void
  onAccess(access: Access): void
}

/** The page without a key. */
const Entrance = ({ asking, notice, onAccess, onAsking, room, rooms, tiles }: EntranceProps) => {
  const { Shared } = room.page
  const onBack = asking === "chosen" ? () => onAsking("where needed") : undefined
  const question = (
    <div class="entrance">
      <KeyForm rooms={rooms.paged} onAccess={onAccess} notice={notice} onBack={onBack} />
      {tiles}
    </div>
  )
  if (Shared === undefined || asking !== "where needed") return question
  return <Shared otherwise={question} onAsk={() => onAsking("chosen")} />
}

/** The rooms that the key opens: the one that took it, and those on this server that did not refuse it. */
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
