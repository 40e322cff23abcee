import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, faultOf, live, makeStage, sent, subscribe } from "./Stage.ts"

const messages = `${api}/messages`

interface Listed {
  readonly messages: ReadonlyArray<Record<string, unknown>>
  readonly next: string | null
}

interface Deliveries {
  readonly deliveries: ReadonlyArray<Record<string, unknown>>
  readonly next: string | null
}

/** Ends the waiting delivery of a message on a channel, as a worker does. */
const end = Effect.fnUntraced(function* (message: string, channel: string, outcome: "done" | "dead") {
  const sql = yield* SqlClient
  yield* sql`WITH ended AS (DELETE FROM jobs WHERE queue = 'deliveries' AND lane = ${channel}
      AND payload ->> 'message' = ${message} RETURNING *)
    INSERT INTO jobs_ended (queue, lane, seq, id, outcome, attempts, repeated, last_error, payload, offered_at, ended_at)
    SELECT queue, lane, seq, id, ${outcome}, 3, true, '404 Gone', payload, offered_at, now() FROM ended`
})

layer(TestServer.shared, live)("sent messages", (it) => {
  it.effect("are listed newest first, page by page, by project, sender and status", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project, projectKey } = yield* makeStage
      const one = yield* project({ slug: "one" })
      yield* project({ slug: "two" })
      const { channels } = yield* subscribe([one])
      const sender = yield* projectKey()
      const made: Array<string> = []
      for (const [name, app] of [
        ["one", "a"],
        ["two", "b"],
        ["one", "b"]
      ] as const) {
        const [message] = (yield* sent(sender, { project: name, app })).messages
        made.unshift(message?.id ?? "")
      }
      const [third = "", second = "", first = ""] = made
      const list = (query: string) =>
        Effect.map(ask("GET", `${messages}?${query}`, { key }), ({ json }) => json as Listed)
      const ids = (query: string) => Effect.map(list(query), (page) => page.messages.map(({ id }) => id))
      const all = yield* list("")
      assert.deepStrictEqual([all.messages.map(({ id }) => id), all.next], [made, null])
      assert.deepInclude(all.messages[0], { app: "b", message: "hello", recipients: 1, status: "delivering" })
      assert.deepStrictEqual(yield* ids("project=one"), [third, first])
      assert.deepStrictEqual(yield* ids(`project=${one}&app=b`), [third])
      assert.deepStrictEqual(yield* ids("status=done"), [second])
      yield* end(first, channels[0] ?? "", "done")
      assert.deepStrictEqual(yield* ids("status=done"), [second, first])
      assert.deepStrictEqual(yield* ids("status=delivering"), [third])
      const page = yield* list("limit=2")
      assert.deepStrictEqual(
        page.messages.map(({ id }) => id),
        [third, second]
      )
      assert.deepStrictEqual(yield* ids(`limit=2&before=${page.next}`), [first])
      for (const [query, field] of [
        ["limit=0", "limit"],
        ["limit=101", "limit"],
        ["before=x", "before"],
        ["status=gone", "status"]
      ] as const)
        assert.match(
          String(faultOf(yield* ask("GET", `${messages}?${query}`, { key }))[1]),
          new RegExp(`^${field}: `)
        )
    })
  )

  it.effect("tell what became of each delivery", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project, projectKey } = yield* makeStage
      const { channels, id: subscriber } = yield* subscribe([yield* project()], { channels: 3 })
      const sender = yield* projectKey()
      const [message] = (yield* sent(sender, { body: "log" })).messages
      const id = message?.id ?? ""
      const [, delivered = "", dead = ""] = channels
      yield* end(id, delivered, "done")
      yield* end(id, dead, "dead")
      const detail = yield* ask("GET", `${messages}/${id}`, { key })
      assert.deepInclude(detail.json, {
        status: "delivering",
        viewUrl: message?.viewUrl,
        bodyBytes: 3,
        deliveries: { waiting: 1, held: 0, delivered: 1, dead: 1, dropped: 0 }
      })
      const read = (query: string, by = key) =>
        Effect.map(
          ask("GET", `${messages}/${id}/deliveries?${query}`, { key: by }),
          ({ json }) => json as Deliveries
        )
      const { deliveries } = yield* read("")
      const on = (channel: string) => deliveries.find((one) => one["channel"] === channel)
      assert.deepInclude(on(channels[0] ?? ""), {
        status: "waiting",
        attempts: 0,
        repeated: false,
        lastError: null
      })
      assert.isString(on(channels[0] ?? "")?.["nextAttemptAt"])
      const ended = { attempts: 3, repeated: true, nextAttemptAt: null, message: id, kind: "push" }
      assert.deepInclude(on(delivered), { ...ended, status: "delivered" })
      assert.deepInclude(on(dead), {
        ...ended,
        status: "dead",
        lastError: "404 Gone",
        subscriber: { id: subscriber, name: "Ada" }
      })
      const page = yield* read("limit=2")
      const rest = yield* read(`before=${page.next}`)
      assert.deepStrictEqual([...page.deliveries, ...rest.deliveries], [...deliveries])
      assert.isNull(rest.next)
      const letters = yield* ask("GET", `${api}/deliveries?status=dead`, { key })
      assert.deepStrictEqual(letters.json, { deliveries: [on(dead)], next: null } as object)
      const stranger = yield* makeStage
      assert.deepStrictEqual((yield* ask("GET", `${api}/deliveries`, { key: stranger.key })).json, {
        deliveries: [],
        next: null
      })
    })
  )

  it.effect("are for the project key that sent them without texts and names, and for no other", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { project, projectKey } = yield* makeStage
      yield* subscribe([yield* project()])
      const [sender, other] = [yield* projectKey(), yield* projectKey()]
      const secret = { message: "secret text", title: "secret title", url: "https://secret.example/" }
      const [message] = (yield* sent(sender, secret)).messages
      const id = message?.id ?? ""
      for (const path of ["", `/${id}`, `/${id}/deliveries`]) {
        const answer = yield* ask("GET", `${messages}${path}`, { key: sender })
        assert.strictEqual(answer.status, 200)
        const text = Buffer.from(answer.bytes).toString()
        assert.include(text, id)
        assert.notMatch(text, /secret|Ada/)
      }
      assert.deepStrictEqual((yield* ask("GET", messages, { key: other })).json, { messages: [], next: null })
      for (const path of [`/${id}`, `/${id}/deliveries`])
        assert.deepStrictEqual(faultOf(yield* ask("GET", `${messages}${path}`, { key: other })), [
          404,
          "Message not found"
        ])
    })
  )

  it.effect("are deleted by their owner with their deliveries", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const { key, project, projectKey } = yield* makeStage
      yield* subscribe([yield* project()])
      const sender = yield* projectKey()
      const [message] = (yield* sent(sender)).messages
      const path = `${messages}/${message?.id}`
      const stranger = yield* makeStage
      for (const [by, status] of [
        [stranger.key, 404],
        [sender, 401],
        [key, 200],
        [key, 404]
      ] as const)
        assert.strictEqual((yield* ask("DELETE", path, { key: by })).status, status)
      const left = yield* sql`SELECT FROM deliveries WHERE message_id = ${message?.id ?? ""}`
      assert.strictEqual(left.length, 0)
    })
  )
})
