import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, faultOf, live, makeStage, send, sent, subscribe } from "./Stage.ts"

layer(TestServer.shared, live)("a send", (it) => {
  it.effect("makes a message a project, and a delivery and a job for each channel of who gets it", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const sql = yield* SqlClient
      const [one, two] = [yield* stage.project({ slug: "one" }), yield* stage.project({ slug: "two" })]
      const both = yield* subscribe([one, two], { channels: 2 })
      yield* subscribe([one], { delivery: "muted" })
      yield* subscribe([one], { state: "failing" })
      yield* subscribe([one], { channels: 0 })
      const key = yield* stage.projectKey()
      const { messages, ok, recipients } = yield* sent(key)
      assert.deepStrictEqual([ok, recipients], [true, 2])
      assert.deepStrictEqual(
        messages.map(({ project, queuedForDigest, recipients }) => ({
          project,
          recipients,
          queuedForDigest
        })),
        [
          { project: { id: one, slug: "one", name: "Project 1" }, recipients: 1, queuedForDigest: 0 },
          { project: { id: two, slug: "two", name: "Project 2" }, recipients: 1, queuedForDigest: 0 }
        ]
      )
      for (const { id } of messages) {
        const rows = yield* sql<{ id: string; channel_id: string; lane: string }>`
          SELECT d.id, d.channel_id, j.lane FROM deliveries d
          JOIN jobs j ON j.queue = 'deliveries' AND j.id = d.id WHERE d.message_id = ${id} ORDER BY d.channel_id`
        assert.deepStrictEqual(
          rows.map(({ channel_id }) => channel_id),
          [...both.channels].toSorted()
        )
        for (const row of rows) {
          assert.match(row.id, /^dlv_[0-9A-Za-z]{22}$/)
          assert.strictEqual(row.lane, row.channel_id)
        }
      }
      assert.strictEqual(new Set(messages.map(({ id }) => id)).size, 2)
    })
  )

  it.effect("goes to the projects that it names by id or slug, each once, and to no other", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const other = yield* makeStage
      const one = yield* stage.project({ slug: "one" })
      yield* stage.project({ slug: "two" })
      const foreign = yield* other.project({ slug: "foreign" })
      const key = yield* stage.projectKey()
      const slugs = ({ messages }: { messages: ReadonlyArray<{ project: { slug: string } }> }) =>
        messages.map(({ project }) => project.slug)
      assert.deepStrictEqual(slugs(yield* sent(key, { project: "two" })), ["two"])
      assert.deepStrictEqual(slugs(yield* sent(key, { project: ["one", one, "two"] })), ["one", "two"])
      assert.deepStrictEqual(faultOf(yield* send(key, { project: "none" })), [404, "project: not found"])
      for (const unknown of ["none", foreign, "foreign"])
        assert.deepStrictEqual(faultOf(yield* send(key, { project: ["one", unknown] })), [
          404,
          "project[1]: not found"
        ])
      const narrow = yield* stage.projectKey({ projects: ["one"] })
      assert.deepStrictEqual(slugs(yield* sent(narrow)), ["one"])
      assert.deepStrictEqual(faultOf(yield* send(narrow, { project: "two" })), [404, "project: not found"])
      const none = yield* other.projectKey()
      yield* (yield* TestServer).ask("DELETE", `${api}/projects/foreign`, { key: other.key })
      assert.deepStrictEqual(faultOf(yield* send(none)), [404, "project: this key covers none"])
    })
  )

  it.effect(
    "tells a page and the count of files only with a body or files, and keeps the text as it is",
    () =>
      Effect.gen(function* () {
        const stage = yield* makeStage
        const sql = yield* SqlClient
        const { url } = yield* TestServer
        yield* stage.project()
        const key = yield* stage.projectKey()
        const [plain] = (yield* sent(key, { message: "a\u0007b\r\nc", title: "" })).messages
        assert.doesNotHaveAnyKeys(plain, ["viewUrl", "attachments"])
        const [row] =
          yield* sql`SELECT message, title, body, priority, body_format FROM messages WHERE id = ${plain?.id ?? ""}`
        const kept = { message: "ab\nc", title: null, body: null, priority: "normal", body_format: "auto" }
        assert.deepStrictEqual({ ...row }, kept as object)
        const [long] = (yield* sent(key, { body: { a: [1] } })).messages
        assert.strictEqual(long?.attachments, 0)
        assert.match(long?.viewUrl ?? "", new RegExp(`^${url}/n/m/[0-9A-Za-z]{40}$`))
        const [body] = yield* sql`SELECT body FROM messages WHERE id = ${long?.id ?? ""}`
        assert.deepStrictEqual({ ...body }, { body: '{"a":[1]}' })
      })
  )

  it.effect("of an unknown upload is refused, as no file of the account has its id", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const refused = yield* send(key, { attachments: [`att_${"0".repeat(22)}`] })
      assert.deepStrictEqual(faultOf(refused), [400, "attachments[0]: no unused upload of this account"])
    })
  )

  it.effect("with an Idempotency-Key is carried out once, also by twins, and failures are not kept", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const sql = yield* SqlClient
      const project = yield* stage.project({ slug: "one" })
      yield* subscribe([project])
      const key = yield* stage.projectKey()
      const once = { "idempotency-key": "k 1" }
      const twins = yield* Effect.all([send(key, {}, once), send(key, {}, once), send(key, {}, once)], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        twins.map(({ status }) => status),
        [201, 201, 201]
      )
      assert.strictEqual(new Set(twins.map(({ json }) => JSON.stringify(json))).size, 1)
      assert.deepStrictEqual(
        twins.map(({ headers }) => headers.get("idempotent-replay")).toSorted(),
        ["true", "true", null].toSorted()
      )
      const [counted] = yield* sql`SELECT count(*)::int AS count FROM messages WHERE project_id = ${project}`
      assert.deepStrictEqual({ ...counted }, { count: 1 })
      // Null is absent, and unknown fields are ignored: it is the same request.
      const same = yield* send(key, { title: null, unknown: 1 }, once)
      assert.deepStrictEqual([same.status, same.json], [201, twins[0]?.json])
      const other = yield* send(key, { title: "other" }, once)
      assert.deepStrictEqual(faultOf(other), [409, "This Idempotency-Key was used for another request"])
      assert.strictEqual(
        (yield* send(yield* stage.projectKey(), {}, once)).headers.get("idempotent-replay"),
        null
      )
      const failed = { "idempotency-key": "k 2" }
      assert.strictEqual((yield* send(key, { project: "later" }, failed)).status, 404)
      yield* stage.project({ slug: "later" })
      assert.strictEqual((yield* send(key, { project: "later" }, failed)).status, 201)
      for (const wrong of ["", "x".repeat(256), "é"])
        assert.deepStrictEqual(faultOf(yield* send(key, {}, { "idempotency-key": wrong })), [
          400,
          "Idempotency-Key: expected 1 to 255 characters of ASCII"
        ])
    })
  )

  it.effect("is refused by its form before its fields, and these before its projects", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      const key = yield* stage.projectKey()
      const raw = (body: string | Uint8Array<ArrayBuffer>, type = "application/json") =>
        Effect.map(ask("POST", `${api}/messages`, { key, body, headers: { "content-type": type } }), faultOf)
      assert.deepStrictEqual(yield* raw("{}", "text/plain"), [
        415,
        "Content-Type must be application/json or multipart/form-data"
      ])
      assert.deepStrictEqual(yield* raw(`"${"x".repeat(8 * 1024 * 1024)}"`), [
        413,
        "body: at most 8388608 bytes"
      ])
      assert.deepStrictEqual(yield* raw("{"), [400, "body: expected a valid JSON body"])
      assert.deepStrictEqual(yield* raw("[]"), [400, "body: expected object"])
      assert.deepStrictEqual(yield* raw("[".repeat(100_000)), [400, "body: nested deeper than 64"])
      assert.deepStrictEqual(yield* raw(new Uint8Array([0x22, 0xff, 0x22])), [400, "body: expected UTF-8"])
      assert.deepStrictEqual(yield* raw("{}"), [400, "app: is required"])
      const deep = (levels: number) =>
        `{"app":"a","message":"m","body":${"[".repeat(levels)}${"]".repeat(levels)}}`
      assert.deepStrictEqual(yield* raw(deep(65)), [400, "body: nested deeper than 64"])
      assert.deepStrictEqual(yield* raw(deep(64)), [404, "project: this key covers none"])
      const large = JSON.stringify({
        app: "a",
        message: "m",
        body: "€".repeat(349_525),
        pad: "x".repeat(7_000_000)
      })
      assert.deepStrictEqual(yield* raw(large), [404, "project: this key covers none"])
    })
  )
})
