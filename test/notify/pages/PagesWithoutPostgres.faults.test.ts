import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { Links } from "#src/notify/Links.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { upload, uploaded } from "#test/notify/attachments/AttachmentStage.ts"
import { faultOf, live, makeStage, sent } from "#test/notify/Stage.ts"

const postgres = postgresWire()
const links = Links.layer.pipe(Layer.provide(Secrets.layer))

/** The page of a digest of this message. */
const digestOf = Effect.fnUntraced(function* (message: string) {
  const sql = yield* SqlClient
  const { hash, token } = (yield* Links).digest("dig_1")
  yield* sql`INSERT INTO digests (id, subscriber_id, due_at, link_hash, items, messages)
    VALUES ('dig_1', 'sbr', now(), ${hash}, 1, ${[message]}::text[])`
  return `/n/d/${token}`
}, Effect.provide(links))

layer(TestServer.own({ messageDays: 7 }, postgres), live)("a server with MESSAGE_DAYS of 7", (it) => {
  it.effect("answers pages and uploads with 503 while Postgres is away, and as before when it is back", () =>
    Effect.gen(function* () {
      const { ask, url } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const { id } = yield* uploaded(key)
      const [message] = (yield* sent(key, { body: "x", attachments: [id] })).messages
      const path = (message?.viewUrl ?? "").replace(url, "")
      const digest = yield* digestOf(message?.id ?? "")
      const get = (one: string) => ask("GET", one, { key: "" })
      assert.strictEqual((yield* get(digest)).status, 200)
      yield* Effect.sync(() => postgres.breakWire("refuse"))
      for (const one of [path, `${path}?source`, `${path}/raw`, `${path}/a/${id}`, digest]) {
        const page = yield* get(one)
        assert.strictEqual(page.status, 503, one)
        assert.strictEqual(page.headers.get("content-type"), "text/html; charset=utf-8")
        assert.strictEqual(page.headers.get("retry-after"), "5")
        assert.include(Buffer.from(page.bytes).toString(), "Not at the moment")
      }
      assert.deepStrictEqual(faultOf(yield* upload(key)), [
        503,
        "The database is away; nothing was changed, try again later"
      ])
      yield* Effect.sync(() => postgres.mend())
      for (const one of [path, digest])
        yield* eventually(
          "the page is back",
          Effect.map(get(one), ({ status }) => status === 200)
        )
      yield* eventually(
        "uploads are taken",
        Effect.map(upload(key), ({ status }) => status === 200)
      )
    })
  )

  it.effect("keeps a file no longer than its message", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const { id } = yield* uploaded(key)
      const [message] = (yield* sent(key, { attachments: [id] })).messages
      const { json } = yield* ask("GET", `/api/v1/messages/${message?.id}`, { key })
      const [file] = (json as { readonly attachments: ReadonlyArray<{ readonly expiresAt: string }> })
        .attachments
      assert.closeTo((Date.parse(file?.expiresAt ?? "") - Date.now()) / 86_400_000, 7, 0.01)
    })
  )
})
