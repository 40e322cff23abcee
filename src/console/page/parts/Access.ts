import { makeAsk } from "../api/Ask.ts"
import { Refused } from "../api/Refused.ts"
import type { PagedRoom, Probe } from "../view/Rooms.ts"

/** The rooms that a key opens, as far as they were asked. */
export interface Access {
  readonly key: string
  /** the first room that took the key, and its answer */
  readonly opened: PagedRoom
  readonly answer: unknown
  /** the rooms before it: the key does not open them, or they are not on this server */
  readonly closed: ReadonlyArray<PagedRoom>
}

/** The rooms that are asked about a key. */
export const probed = (rooms: ReadonlyArray<PagedRoom>): ReadonlyArray<{ room: PagedRoom; probe: Probe }> =>
  rooms.flatMap((room) => (room.page.probe === undefined ? [] : [{ room, probe: room.page.probe }]))

/** Asks one room after the other until one takes the key. Fails with `Refused` where none does. */
export const accessOf = async (key: string, rooms: ReadonlyArray<PagedRoom>): Promise<Access> => {
  const ask = makeAsk(key)
  const closed: Array<PagedRoom> = []
  let refused = new Refused(404, "No room here takes a key", undefined)
  for (const { probe, room } of probed(rooms)) {
    try {
      return { key, opened: room, answer: await ask(probe.path), closed }
    } catch (error) {
      // A router's key, or a server without this room.
      if (!(error instanceof Refused) || (error.status !== 403 && error.status !== 404)) throw error
      refused = error
      closed.push(room)
    }
  }
  throw refused
}
