import type { View } from "./View.ts"

/** Anything that Preact renders. Its own types would bring the DOM into every program that imports this file. */
type Shown = object | string | null | undefined

/** A room of the server as the console shows it: the record `room` that its folder's `Room.tsx` exports. */
export interface Room {
  /** the name of the folder, and of the room everywhere in the project */
  readonly name: string
  readonly tile: RoomTile
  readonly page?: RoomPage
}

/** The line of a room in the list of rooms. */
export interface RoomTile {
  readonly order: number
  readonly title: string
  readonly purpose: string
  /** the components on `/readyz` that the room depends on */
  readonly components: ReadonlyArray<string>
}

export interface RoomPage {
  /** `/?room=<path>`; empty for the page at `/` */
  readonly path: string
  /** the name in the navigation */
  readonly title: string
  readonly order: number
  /** names of the parameters that the page keeps in the address */
  readonly params: ReadonlyArray<string>
  /** the parameter that selects the open item; the page scrolls to the top when it changes */
  readonly item?: string
  /** `tiles`: the list of rooms, for a page that has a place for it */
  readonly Page: (props: { readonly tiles: Shown }) => Shown
  /** the page without a user; `otherwise` is the form to sign in, and `onAsk` leads to it */
  readonly Shared?: (props: { readonly otherwise: Shown; onAsk(): void }) => Shown
  readonly probe?: Probe
}

/** A read that shows whether the room is open to the user: 403 and 404 say that it is not. */
export interface Probe {
  readonly path: string
  /** the first view, from the answer; undefined: the present one */
  landing?(answer: unknown, view: View): View | undefined
}

export type PagedRoom = Room & { readonly page: RoomPage }

export interface Rooms {
  /** all of them, in the order of the list of rooms */
  readonly tiled: ReadonlyArray<Room>
  /** those with a page, in the order of the navigation */
  readonly paged: ReadonlyArray<PagedRoom>
  /** the one whose page is at `/` */
  readonly home: PagedRoom
}

/** The rooms of the files found, by their paths: `./<room>/Room.tsx`. Throws if two pages have one address. */
export const roomsOf = (files: Readonly<Record<string, Room>>): Rooms => {
  for (const [file, { name }] of Object.entries(files)) {
    if (!file.endsWith(`/${name}/Room.tsx`)) throw new Error(`${file} is the room ${name}`)
  }
  const tiled = Object.values(files).sort((a, b) => a.tile.order - b.tile.order)
  const paged = tiled.filter(hasPage).sort((a, b) => a.page.order - b.page.order)
  const home = paged.find(({ page }) => page.path === "")
  if (home === undefined) throw new Error("No room has the page at /")
  for (const { name, page } of paged) {
    const first = paged.find((other) => other.page.path === page.path)
    if (first?.name !== name) throw new Error(`${name} and ${first?.name} are both at /?room=${page.path}`)
  }
  return { tiled, paged, home }
}

const hasPage = (room: Room): room is PagedRoom => room.page !== undefined

/** The room whose page the view is of. */
export const roomAt = ({ home, paged }: Rooms, path: string | null): PagedRoom =>
  paged.find(({ page }) => page.path === path) ?? home

/** Reads a query string; parameters unknown to the page are left out. */
export const parseView = (rooms: Rooms, search: string): View => {
  const query = new URLSearchParams(search)
  const { page } = roomAt(rooms, query.get("room"))
  const params = page.params.flatMap((name) => {
    const value = query.get(name)
    return value === null || value === "" ? [] : [[name, value] as const]
  })
  return { room: page.path, params: Object.fromEntries(params) }
}
