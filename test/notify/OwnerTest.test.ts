import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, faultOf, live, makeStage, type SentBody, subscribe } from "./Stage.ts"

layer(TestServer.shared, live)("the owner's test of a project", (it) => {
  it.effect("reaches its subscribers, and is in the log as a message without a key", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const sql = yield* SqlClient
      const { ask } = yield* TestServer
      const id = yield* stage.project({ slug: "builds", name: "Builds" })
      yield* stage.project({ slug: "other" })
      yield* subscribe([id], { channels: 2 })
      for (const ref of ["builds", id]) {
        const { json, status } = yield* ask("POST", `${api}/projects/${ref}/test`, { key: stage.key })
        assert.strictEqual(status, 201)
        const { messages, ok, recipients } = json as SentBody
        assert.deepStrictEqual([ok, recipients, messages.length], [true, 1, 1])
        const [message] = messages
        assert.deepStrictEqual(message?.project, { id, slug: "builds", name: "Builds" })
        assert.doesNotHaveAnyKeys(message, ["viewUrl", "attachments"])
        const [row] = yield* sql`SELECT key_id, app, title, (SELECT count(*)::int FROM deliveries d
          JOIN jobs j ON j.queue = 'deliveries' AND j.id = d.id WHERE d.message_id = m.id) AS waiting
          FROM messages m WHERE id = ${message?.id ?? ""}`
        assert.deepStrictEqual({ ...row }, {
          key_id: null,
          app: "Builds",
          title: "Test",
          waiting: 2
        } as object)
      }
      const listed = yield* ask("GET", `${api}/messages?app=Builds`, { key: stage.key })
      assert.lengthOf((listed.json as { messages: ReadonlyArray<unknown> }).messages, 2)
      const project = yield* stage.projectKey()
      const seen = yield* ask("GET", `${api}/messages`, { key: project })
      assert.deepInclude(seen.json as object, { messages: [] })
    })
  )

  it.effect("is for its owner alone", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const stranger = yield* makeStage
      const { ask } = yield* TestServer
      const id = yield* stage.project()
      const test = (key: string) => ask("POST", `${api}/projects/${id}/test`, { key })
      assert.deepStrictEqual(faultOf(yield* test(stranger.key)), [404, "Project not found"])
      assert.deepStrictEqual(faultOf(yield* test(yield* stage.projectKey())), [
        401,
        "Invalid or missing API key"
      ])
    })
  )
})
