import { type Room, roomsOf } from "#src/console/page/view/Rooms.ts"

declare global {
  interface ImportMeta {
    /** Vite's, of which the types would bring those of a browser with them. */
    glob<A>(pattern: string, options: { readonly eager: true; readonly import: string }): Record<string, A>
  }
}

/** The files of the rooms' pages, found as the page finds them. */
export const roomFiles = import.meta.glob<Room>("../../src/console/page/*/Room.tsx", {
  eager: true,
  import: "room"
})

/** The page of the room that `test/rooms` adds. */
export const newRoomFile = import.meta.glob<Room>("../rooms/notes/page/Room.tsx", {
  eager: true,
  import: "room"
})

export const consoleRooms = roomsOf(roomFiles)
