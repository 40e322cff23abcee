import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { live, makeStage } from "./Stage.ts"

interface Listed {
  readonly emails: ReadonlyArray<{ readonly id: string; readonly created_at: string }>
  readonly meta: { readonly limit: number; readonly offset: number; readonly total: number }
}

const later = new Date(Date.now() + 3_600_000).toISOString()

layer(TestServer.shared, live)("a list of mails", (it) => {
  it.effect("has the newest first, in pages", () =>
    Effect.gen(function* () {
      const { get, sent } = yield* makeStage
      const ids = yield* Effect.forEach([1, 2, 3], () => sent({ send_at: later }))
      const list = (query: string) => Effect.map(get(query), ({ json }) => json as Listed)
      const all = yield* list("")
      assert.deepStrictEqual(
        all.emails.map(({ id }) => id),
        ids.toReversed()
      )
      assert.deepStrictEqual(all.meta, { limit: 20, offset: 0, total: 3 })
      const second = yield* list("?limit=1&offset=1")
      assert.deepStrictEqual(
        second.emails.map(({ id }) => id),
        [ids[1]]
      )
      assert.deepStrictEqual(second.meta, { limit: 1, offset: 1, total: 3 })
      for (const query of ["?limit=0", "?limit=101", "?offset=-1", "?status=gone"])
        assert.strictEqual((yield* get(query)).status, 400, query)
    })
  )

  it.effect("is narrowed by a recipient's status and address in any case, by campaign and by time", () =>
    Effect.gen(function* () {
      const { get, sent, tried } = yield* makeStage
      const now = yield* sent({ to: "Ada.L@Example.org, bob@bücher.example" })
      yield* tried(now)
      const waiting = yield* sent({
        to: "ada@example.org",
        send_at: later,
        headers: { "X-Campaign-ID": "May" }
      })
      const found = (query: string) =>
        Effect.map(get(`?${query}`), ({ json }) => (json as Listed).emails.map(({ id }) => id))
      assert.deepStrictEqual(yield* found("status=sent"), [now])
      assert.deepStrictEqual(yield* found("status=queued"), [waiting])
      assert.deepStrictEqual(yield* found("to=ada.l@EXAMPLE.org"), [now])
      assert.deepStrictEqual(yield* found(`to=${encodeURIComponent("BOB@Bücher.example")}`), [now])
      assert.deepStrictEqual(yield* found("to=ada@example.org&status=sent"), [])
      assert.deepStrictEqual(yield* found("to=ada"), [])
      assert.deepStrictEqual(yield* found("campaign=May"), [waiting])
      assert.deepStrictEqual(yield* found("campaign=may"), [])
      const [newest] = ((yield* get("")).json as Listed).emails
      assert.deepStrictEqual(yield* found(`since=${newest?.created_at}`), [waiting])
      assert.deepStrictEqual(yield* found(`since=${later}`), [])
      for (const since of ["1", "yesterday", "2026-02-31T00:00:00Z", "2026-02-01T00:00:00"]) {
        const { json, status } = yield* get(`?since=${since}`)
        assert.strictEqual(status, 400)
        assert.match((json as { error: string }).error, /^since: expected an ISO-8601 instant/, since)
      }
    })
  )

  it.effect("and a mail in it is waited for up to 30 seconds, until its first attempts have ended", () =>
    Effect.gen(function* () {
      const { get, read, sent } = yield* makeStage
      const id = yield* sent()
      const began = performance.now()
      assert.strictEqual((yield* read(id, 30)).recipients[0]?.status, "sent")
      const waits = yield* sent({ send_at: later })
      assert.strictEqual((yield* read(waits, 1)).recipients[0]?.status, "queued")
      assert.isAtLeast(performance.now() - began, 1_000)
      for (const wait of ["31", "-1", "x"])
        assert.strictEqual((yield* get(`/${id}?wait=${wait}`)).status, 400, wait)
    })
  )

  it.effect("and its mails are their owner's alone", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const [one, other] = [yield* makeStage, yield* makeStage]
      const id = yield* one.sent({ send_at: later })
      assert.deepStrictEqual(((yield* other.get("")).json as Listed).meta.total, 0)
      const canceled = yield* ask("POST", `/api/v1/emails/${id}/cancel`, { key: other.key })
      assert.strictEqual(canceled.status, 404)
      assert.strictEqual((yield* one.read(id)).recipients[0]?.status, "queued")
    })
  )
})
