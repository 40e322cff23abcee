import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { upload, uploaded } from "#test/notify/attachments/AttachmentStage.ts"
import { faultOf, live, makeStage, sent } from "#test/notify/Stage.ts"

const postgres = postgresWire()

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
      const get = (below: string) => ask("GET", `${path}${below}`, { key: "" })
      yield* Effect.sync(() => postgres.breakWire("refuse"))
      for (const below of ["", "?source", "/raw", `/a/${id}`]) {
        const page = yield* get(below)
        assert.strictEqual(page.status, 503, below)
        assert.strictEqual(page.headers.get("content-type"), "text/html; charset=utf-8")
        assert.strictEqual(page.headers.get("retry-after"), "5")
        assert.include(Buffer.from(page.bytes).toString(), "Not at the moment")
      }
      assert.deepStrictEqual(faultOf(yield* upload(key)), [
        503,
        "The database is away; nothing was changed, try again later"
      ])
      yield* Effect.sync(() => postgres.mend())
      yield* eventually(
        "the page is back",
        Effect.map(get(""), ({ status }) => status === 200)
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
