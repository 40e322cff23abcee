import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { deleteUnshown } from "#src/notify/log/OldMessages.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { api, faultOf, live, makeStage, send, sent, subscribe } from "./Stage.ts"

const projects = `${api}/projects`

layer(TestServer.shared, live)("projects", (it) => {
  it.effect("are made, listed by slug, read by id and by slug, changed and deleted", () =>
    Effect.gen(function* () {
      const { ask, url } = yield* TestServer
      const { key } = yield* makeStage
      const made = yield* ask("POST", projects, { key, json: { name: "Nächtliche Backups!" } })
      assert.strictEqual(made.status, 201)
      const { createdAt, id, joinUrl, ...rest } = made.json as Record<string, unknown>
      assert.match(String(id), /^pjt_[0-9A-Za-z]{22}$/)
      assert.match(String(createdAt), /Z$/)
      assert.match(String(joinUrl), new RegExp(`^${url}/n/join/[0-9A-Za-z]{40}$`))
      const fields = {
        slug: "nachtliche-backups",
        name: "Nächtliche Backups!",
        description: "",
        joining: "link"
      }
      assert.deepStrictEqual(rest, { ...fields, subscribers: 0 })
      const other = yield* ask("POST", projects, { key, json: { name: "A", slug: "a", description: "d" } })
      const listed = yield* ask("GET", projects, { key })
      assert.deepStrictEqual(listed.json, { projects: [other.json, made.json] })
      for (const ref of [String(id), "nachtliche-backups"])
        assert.deepStrictEqual((yield* ask("GET", `${projects}/${ref}`, { key })).json, made.json)
      yield* subscribe([String(id)])
      const changed = yield* ask("PATCH", `${projects}/${String(id)}`, {
        key,
        json: { slug: "night", joining: "closed" }
      })
      assert.deepInclude(changed.json, { slug: "night", joining: "closed", joinUrl: null, subscribers: 1 })
      assert.strictEqual((yield* ask("GET", `${projects}/nachtliche-backups`, { key })).status, 404)
      assert.deepStrictEqual((yield* ask("DELETE", `${projects}/night`, { key })).json, { deleted: true })
      assert.deepStrictEqual(faultOf(yield* ask("GET", `${projects}/${String(id)}`, { key })), [
        404,
        "Project not found"
      ])
    })
  )

  it.effect("have a slug of their own among those of their owner", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project } = yield* makeStage
      yield* project({ slug: "one" })
      yield* project({ slug: "two" })
      const make = (json: object, by = key) => Effect.map(ask("POST", projects, { key: by, json }), faultOf)
      assert.deepStrictEqual(yield* make({ name: "x", slug: "one" }), [409, "slug: is taken"])
      assert.deepStrictEqual(yield* make({ name: "One" }), [409, "slug: is taken"])
      const renamed = yield* ask("PATCH", `${projects}/two`, { key, json: { slug: "one" } })
      assert.deepStrictEqual(faultOf(renamed), [409, "slug: is taken"])
      const stranger = yield* makeStage
      yield* stranger.project({ slug: "one" })
      yield* ask("DELETE", `${projects}/one`, { key })
      yield* project({ slug: "one" })
      const slug = "slug: expected 1 to 63 lower-case letters, digits and hyphens, the first no hyphen"
      for (const wrong of ["", "-a", "A", "a_b", "x".repeat(64), "ä"])
        assert.deepStrictEqual(yield* make({ name: "x", slug: wrong }), [400, slug])
      assert.deepStrictEqual(yield* make({ name: "日本" }), [
        400,
        "slug: is required: none can be made from the name"
      ])
      assert.deepStrictEqual(yield* make({ name: "x", description: "x".repeat(501) }), [
        400,
        "description: expected text of at most 500 characters"
      ])
    })
  )

  it.effect("get another join link, by which the old one is dead", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project } = yield* makeStage
      const id = yield* project()
      const before = textOf(yield* ask("GET", `${projects}/${id}`, { key }), "joinUrl")
      const renewed = textOf(yield* ask("POST", `${projects}/${id}/join-link`, { key }), "joinUrl")
      assert.notStrictEqual(renewed, before)
      assert.strictEqual(textOf(yield* ask("GET", `${projects}/${id}`, { key }), "joinUrl"), renewed)
    })
  )

  it.effect("show their subscribers without addresses, and lose one that is removed", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project, projectKey } = yield* makeStage
      const id = yield* project()
      const first = yield* subscribe([id], { channels: 2 })
      const second = yield* subscribe([id], { delivery: "daily" })
      const path = `${projects}/${id}/subscribers`
      const listed = yield* ask("GET", path, { key })
      assert.notInclude(Buffer.from(listed.bytes).toString(), "push.example")
      const { meta, subscribers } = listed.json as {
        meta: object
        subscribers: ReadonlyArray<{
          id: string
          delivery: string
          channels: ReadonlyArray<{ id: string; kind: string; state: string }>
        }>
      }
      assert.deepStrictEqual(meta, { limit: 100, offset: 0, total: 2 })
      assert.sameMembers(
        subscribers.map((one) => one.id),
        [first.id, second.id]
      )
      const found = subscribers.find((one) => one.id === first.id)
      assert.sameMembers(found?.channels.map((channel) => channel.id) ?? [], [...first.channels])
      assert.deepInclude(found?.channels[0] ?? {}, { kind: "push", state: "active" })
      assert.deepStrictEqual((yield* ask("DELETE", `${path}/${first.id}`, { key })).json, { deleted: true })
      assert.deepStrictEqual(faultOf(yield* ask("DELETE", `${path}/${first.id}`, { key })), [
        404,
        "Subscriber not found"
      ])
      assert.strictEqual((yield* sent(yield* projectKey())).recipients, 1)
    })
  )

  it.effect("that are deleted take no message, and their own are not there any more", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project, projectKey } = yield* makeStage
      const id = yield* project({ slug: "gone" })
      yield* subscribe([id])
      const sender = yield* projectKey()
      const [message] = (yield* sent(sender)).messages
      yield* ask("DELETE", `${projects}/gone`, { key })
      assert.deepStrictEqual(faultOf(yield* send(sender, { project: id })), [404, "project: not found"])
      assert.strictEqual((yield* ask("GET", `${api}/messages/${message?.id}`, { key })).status, 404)
      const sql = yield* SqlClient
      const rows = Effect.map(
        sql`SELECT id FROM messages WHERE id = ${message?.id ?? ""}
          UNION ALL SELECT id FROM deliveries WHERE message_id = ${message?.id ?? ""}`,
        ({ length }) => length
      )
      assert.strictEqual(yield* rows, 2)
      yield* deleteUnshown
      assert.strictEqual(yield* rows, 0)
    })
  )
})
