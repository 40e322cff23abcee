import { assert, layer } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import type { Connection } from "#src/cli/Connection.ts"
import { commandsOf, signalboxOf } from "#src/cli/Signalbox.ts"
import { decode } from "#src/Config.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import { rooms } from "#src/Rooms.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { connectionTo } from "./notes/NotesClient.ts"
import { notes } from "./notes/Room.ts"

const live = { excludeTestServices: true } as const

const list = [...rooms, notes(postgresMigrations.length + 1)]

layer(TestServer.own({ rooms: new Set(["accounts", "notes"]) }, { rooms: list }), live)(
  "a new room is its folder and one line of the list",
  (it) => {
    it.effect("its noun is kept, its own route served, and a wrong method told", () =>
      Effect.gen(function* () {
        const { ask, makeUser } = yield* TestServer
        const made = yield* ask("POST", "/api/v1/notes", { json: { text: "one" } })
        assert.deepInclude(made, { status: 201 })
        const listed = yield* ask("GET", "/api/v1/notes")
        assert.deepStrictEqual(listed.json, { notes: [made.json] })
        const { key } = yield* makeUser()
        assert.deepStrictEqual((yield* ask("GET", "/api/v1/notes", { key })).json, { notes: [] })
        assert.strictEqual((yield* ask("GET", "/api/v1/notes", { key: "" })).status, 401)
        const wrong = yield* ask("DELETE", "/api/v1/notes")
        assert.deepStrictEqual([wrong.status, wrong.headers.get("allow")], [405, "GET, HEAD, POST"])
        const raw = yield* ask("GET", "/notes.txt", { key: "" })
        assert.deepStrictEqual([raw.status, Buffer.from(raw.bytes).toString()], [200, "raw"])
      })
    )

    it.effect("its noun is made, listed, read, changed and deleted by its owner, within a limit", () =>
      Effect.gen(function* () {
        const { ask, makeUser } = yield* TestServer
        const { key } = yield* makeUser()
        const { key: other } = yield* makeUser()
        const make = (text: string) => ask("POST", "/api/v1/notes", { key, json: { text } })
        const one = (yield* make("one")).json as { readonly id: string; readonly [field: string]: unknown }
        const path = `/api/v1/notes/${one.id}`
        assert.deepInclude(one, { text: "one", pinned: false })
        assert.hasAllKeys(one, ["id", "text", "pinned", "createdAt"])
        assert.deepStrictEqual((yield* ask("GET", path, { key })).json, one)
        const changed = yield* ask("PATCH", path, { key, json: { pinned: true } })
        assert.deepStrictEqual(changed.json, { ...one, pinned: true })
        assert.deepStrictEqual((yield* ask("PATCH", path, { key, json: {} })).json, changed.json)
        for (const [method, json] of [["GET"], ["PATCH", { text: "mine" }], ["DELETE"]] as const) {
          const refused = yield* ask(method, path, { key: other, ...(json !== undefined && { json }) })
          assert.deepStrictEqual([refused.status, refused.json], [404, { error: "Note not found" }])
        }
        const wrong = yield* ask("PATCH", path, { key, json: { text: "" } })
        assert.deepStrictEqual(
          [wrong.status, wrong.json],
          [400, { error: "text: expected text of 1 to 1000 characters on one line" }]
        )
        const { json: two } = yield* make("two")
        yield* make("three")
        assert.strictEqual((yield* make("four")).status, 409)
        assert.deepStrictEqual((yield* ask("DELETE", path, { key })).json, { deleted: true })
        assert.strictEqual((yield* ask("DELETE", path, { key })).status, 404)
        const left = (yield* ask("GET", "/api/v1/notes", { key })).json as { notes: ReadonlyArray<object> }
        assert.deepStrictEqual([left.notes.length, left.notes[0]], [2, two])
      })
    )

    it.effect(
      "it is in the document, on /docs and on /readyz; a room that ROOMS leaves out is not served",
      () =>
        Effect.gen(function* () {
          const { ask } = yield* TestServer
          const document = (yield* ask("GET", "/openapi.json")).json as { paths: object }
          assert.property(document.paths, "/api/v1/notes")
          assert.include(Buffer.from((yield* ask("GET", "/docs")).bytes).toString(), "/api/v1/notes")
          const ready = (yield* ask("GET", "/readyz")).json as { components: Record<string, unknown> }
          assert.deepStrictEqual(ready.components["notes"], { status: "up", detail: "kept" })
          assert.notProperty(ready.components, "analytics")
          assert.strictEqual((yield* ask("GET", "/api/v1/sites")).status, 404)
        })
    )

    it.effect("its commands make, list, change and delete a note", () =>
      Effect.gen(function* () {
        const { makeUser, url } = yield* TestServer
        const { key } = yield* makeUser()
        const signalbox = signalboxOf(yield* Effect.promise(() => commandsOf(list)))
        const names = signalbox.subcommands.flatMap((group) => group.commands.map(({ name }) => name))
        assert.includeMembers(names, ["notes", "sites", "users"])
        const lines: Array<string> = []
        const console_ = { ...console, log: (line: string) => void lines.push(line) }
        const run = (...args: ReadonlyArray<string>) =>
          (
            Command.runWith(signalbox, { version: "0" })(args) as Effect.Effect<
              void,
              unknown,
              Connection | Command.Environment
            >
          ).pipe(
            Effect.provide(Layer.merge(connectionTo(list, url, key), NodeServices.layer)),
            Effect.provideService(Console.Console, console_),
            Effect.map(() => lines.splice(0).join("\n"))
          )
        assert.strictEqual(yield* run("notes", "create", "by hand"), "Kept: by hand")
        const [, row = ""] = (yield* run("notes", "list")).split("\n")
        assert.match(row, /^not_[0-9A-Za-z]{22}  by hand  false$/)
        const [id = ""] = row.split(" ")
        assert.strictEqual(yield* run("notes", "update", id, "anew"), "Kept: anew")
        assert.strictEqual(yield* run("notes", "delete", id), "Deleted")
        assert.strictEqual(yield* run("notes", "list"), "ID  TEXT  PINNED")
      })
    )

    it.effect("ROOMS takes its name", () =>
      Effect.gen(function* () {
        const names = list.map(({ name }) => name)
        const config = yield* decode({ ROOMS: "notes" }, "/srv", names)
        assert.deepStrictEqual([...config.rooms], ["notes"])
        const fault = yield* Effect.flip(decode({ ROOMS: "note" }, "/srv", names))
        assert.include(fault.message, "notes")
      })
    )
  }
)
