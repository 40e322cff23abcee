import type { Ask } from "../api/Ask.ts"
import { Refused } from "../api/Refused.ts"
import type { PagedRoom, Probe } from "../view/Rooms.ts"

/** The rooms that are open to the user, as far as they were asked. */
export interface Access {
  /** the first room that was open, and its answer */
  readonly opened: PagedRoom
  readonly answer: unknown
  /** the rooms before it: they are closed to the user, or not on this server */
  readonly closed: ReadonlyArray<PagedRoom>
}

/** The rooms that are asked whether they are open. */
export const probed = (rooms: ReadonlyArray<PagedRoom>): ReadonlyArray<{ room: PagedRoom; probe: Probe }> =>
  rooms.flatMap((room) => (room.page.probe === undefined ? [] : [{ room, probe: room.page.probe }]))

/** Asks one room after the other until one is open. Fails with `Refused` where none is. */
export const accessOf = async (ask: Ask, rooms: ReadonlyArray<PagedRoom>): Promise<Access> => {
  const closed: Array<PagedRoom> = []
  let refused = new Refused(404, "No room here has a page", undefined)
  for (const { probe, room } of probed(rooms)) {
    try {
      return { opened: room, answer: await ask(probe.path), closed }
    } catch (error) {
      // A router's key, or a server without this room.
      if (!(error instanceof Refused) || (error.status !== 403 && error.status !== 404)) throw error
      refused = error
      closed.push(room)
    }
  }
  throw refused
}
