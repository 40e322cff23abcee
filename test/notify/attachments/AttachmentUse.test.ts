import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, faultOf, live, makeStage, send, sent, subscribe } from "#test/notify/Stage.ts"
import { expire, rowOf, uploaded } from "./AttachmentStage.ts"

const day = 86_400
const notUnused = (index: number): readonly [number, unknown] => [
  400,
  `attachments[${index}]: no unused upload of this account`
]

layer(TestServer.shared, live)("attachments of a send", (it) => {
  it.effect("are those of all its messages, in order, and kept for 30 days", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const sql = yield* SqlClient
      yield* stage.project()
      yield* stage.project()
      const key = yield* stage.projectKey()
      const [one, two] = [yield* uploaded(key), yield* uploaded(yield* stage.projectKey())]
      const { messages } = yield* sent(key, { attachments: [two.id, one.id] })
      assert.lengthOf(messages, 2)
      for (const { attachments, id, viewUrl } of messages) {
        assert.strictEqual(attachments, 2)
        assert.isDefined(viewUrl)
        const rows = yield* sql<{ id: string }>`SELECT attachment_id AS id FROM message_attachments
          WHERE message_id = ${id} ORDER BY place`
        assert.deepStrictEqual(
          rows.map((row) => row.id),
          [two.id, one.id]
        )
      }
      const row = yield* rowOf(one.id)
      assert.strictEqual(row?.state, "used")
      assert.closeTo(row?.seconds ?? 0, 30 * day, 60)
    })
  )

  it.effect("are named where the message is read; a project key sees no names", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const { id, ...file } = yield* uploaded(key, { query: "?filename=run.log" })
      const [message] = (yield* sent(key, { attachments: [id] })).messages
      const filesFor = (by: string) =>
        Effect.map(
          ask("GET", `${api}/messages/${message?.id}`, { key: by }),
          ({ json }) => (json as { readonly attachments: ReadonlyArray<object> }).attachments
        )
      const [shown] = yield* filesFor(stage.key)
      assert.deepInclude(shown, {
        id,
        filename: "run.log",
        contentType: file.contentType,
        size: file.size,
        sha256: file.sha256,
        expired: false
      })
      const [withoutName] = yield* filesFor(key)
      assert.deepInclude(withoutName, { id, size: file.size })
      assert.doesNotHaveAnyKeys(withoutName, ["filename"])
      yield* expire(id)
      const [expired] = yield* filesFor(stage.key)
      assert.deepInclude(expired, { filename: "run.log", expired: true })
    })
  )

  it.effect("have to be unused, unexpired, of the account, and each given once", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const other = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const mine = yield* uploaded(key)
      const foreign = yield* uploaded(yield* other.projectKey())
      const old = yield* uploaded(key)
      yield* expire(old.id)
      const unknown = `att_${"0".repeat(22)}`
      for (const id of [foreign.id, old.id, unknown, "", "x", `${mine.id} `]) {
        assert.deepStrictEqual(faultOf(yield* send(key, { attachments: [mine.id, id] })), notUnused(1))
        // A failed send leaves its uploads unused.
        assert.strictEqual((yield* rowOf(mine.id))?.state, "unused")
      }
      assert.deepStrictEqual(faultOf(yield* send(key, { attachments: [mine.id, mine.id] })), [
        400,
        "attachments[1]: given twice"
      ])
      yield* sent(key, { attachments: [mine.id] })
      assert.deepStrictEqual(faultOf(yield* send(key, { attachments: [mine.id] })), notUnused(0))
    })
  )

  it.effect("are at most 20, and the twentieth counts", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const ids: Array<string> = []
      for (let made = 0; made < 21; made++) ids.push((yield* uploaded(key)).id)
      assert.deepStrictEqual(faultOf(yield* send(key, { attachments: ids })), [
        400,
        "attachments: at most 20"
      ])
      assert.strictEqual((yield* sent(key, { attachments: ids.slice(0, 20) })).messages[0]?.attachments, 20)
    })
  )

  it.effect(
    "go to one of two sends that race for an upload; the other is 400, and nothing of it is left",
    () =>
      Effect.gen(function* () {
        const stage = yield* makeStage
        const sql = yield* SqlClient
        const project = yield* stage.project()
        yield* subscribe([project])
        const key = yield* stage.projectKey()
        for (let round = 0; round < 5; round++) {
          const [one, two] = [(yield* uploaded(key)).id, (yield* uploaded(key)).id]
          const answers = yield* Effect.all(
            [
              send(key, { attachments: [one, two] }),
              send(key, { attachments: [two, one] }),
              send(key, { attachments: [one] })
            ],
            { concurrency: "unbounded" }
          )
          const accepted = answers.filter(({ status }) => status === 201)
          assert.lengthOf(accepted, 1)
          for (const refused of answers.filter(({ status }) => status !== 201))
            assert.match(
              String(faultOf(refused)),
              /^400,attachments\[[01]\]: no unused upload of this account$/
            )
          const [counted] = yield* sql`SELECT count(*)::int AS messages,
          (SELECT count(*) FROM deliveries d JOIN messages m ON m.id = d.message_id WHERE m.project_id = ${project})::int
            AS deliveries FROM messages WHERE project_id = ${project}`
          assert.deepStrictEqual({ ...counted }, { messages: round + 1, deliveries: round + 1 })
        }
      })
  )

  it.effect("are the same for a repetition with its Idempotency-Key", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const { id } = yield* uploaded(key)
      const once = { "idempotency-key": "files" }
      const [first, again] = [
        yield* send(key, { attachments: [id] }, once),
        yield* send(key, { attachments: [id] }, once)
      ]
      assert.deepStrictEqual([again.status, again.json], [201, first.json])
      assert.strictEqual(again.headers.get("idempotent-replay"), "true")
    })
  )

  it.effect("are kept while one of its messages is there, and go with the last", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      yield* stage.project()
      const key = yield* stage.projectKey()
      const { id } = yield* uploaded(key)
      const { messages } = yield* sent(key, { attachments: [id] })
      const remove = (at: number) => ask("DELETE", `${api}/messages/${messages[at]?.id}`, { key: stage.key })
      assert.strictEqual((yield* remove(0)).status, 200)
      assert.strictEqual((yield* rowOf(id))?.state, "used")
      assert.strictEqual((yield* remove(1)).status, 200)
      const row = yield* rowOf(id)
      assert.strictEqual(row?.state, "deleted")
      assert.isAtMost(row?.seconds ?? 1, 0)
    })
  )
})
