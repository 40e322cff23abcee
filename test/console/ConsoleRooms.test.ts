import { assert, describe, it } from "@effect/vitest"
import { parseView, type Room, roomAt, roomsOf } from "#src/console/page/view/Rooms.ts"
import { formatView } from "#src/console/page/view/View.ts"
import { rooms } from "#src/Rooms.ts"
import { consoleRooms, newRoomFile, roomFiles } from "./ConsoleRooms.ts"

const namesOf = (list: ReadonlyArray<Room>): ReadonlyArray<string> => list.map(({ name }) => name)

/** A room whose page is at the path. */
const roomWith = (name: string, path: string): Room => ({
  name,
  tile: { order: 1, title: name, purpose: "", components: [name] },
  page: { path, title: name, order: 1, params: [], Page: () => null }
})

describe("the rooms of the console", () => {
  it("are those of the server, and stand in their order", () => {
    const served = rooms.map(({ name }): string => name)
    assert.sameMembers([...namesOf(consoleRooms.tiled)], served)
    assert.deepStrictEqual(namesOf(consoleRooms.tiled), [
      "accounts",
      "llm",
      "agents",
      "analytics",
      "notify",
      "files",
      "mail"
    ])
    assert.deepStrictEqual(namesOf(consoleRooms.paged), [
      "analytics",
      "llm",
      "agents",
      "notify",
      "files",
      "mail"
    ])
  })

  it("are found by their folders: a new one is its file and nothing else", () => {
    const [notes] = Object.values(newRoomFile)
    assert.isDefined(notes)
    const all = roomsOf({ ...roomFiles, "./notes/Room.tsx": notes })
    assert.deepStrictEqual(namesOf(all.tiled).slice(-1), ["notes"])
    assert.deepStrictEqual(namesOf(all.paged), [
      "analytics",
      "llm",
      "agents",
      "notify",
      "files",
      "mail",
      "notes"
    ])
    const view = parseView(all, "?room=notes&site=st_1")
    assert.deepStrictEqual(view, { room: "notes", params: {} })
    assert.strictEqual(formatView(view), "/?room=notes")
    assert.strictEqual(roomAt(all, "notes"), notes)
    assert.strictEqual(roomAt(consoleRooms, "notes").name, "analytics")
  })

  it("are refused where two are at one address, none is at /, or a folder is another's", () => {
    const home = roomWith("home", "")
    assert.throws(
      () => roomsOf({ "./home/Room.tsx": home, "./other/Room.tsx": roomWith("other", "") }),
      "other and home are both at /?room="
    )
    assert.throws(
      () => roomsOf({ "./notes/Room.tsx": roomWith("notes", "notes") }),
      "No room has the page at /"
    )
    assert.throws(() => roomsOf({ "./house/Room.tsx": home }), "./house/Room.tsx is the room home")
  })
})
