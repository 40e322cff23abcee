import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { Suppressions } from "#src/mail/suppressions/Suppressions.ts"
import { UnsubscribeTokens } from "#src/mail/unsubscribe/UnsubscribeTokens.ts"
import { HttpReceiver } from "#test/harness/HttpReceiver.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { endedOf, ends, waitingOf } from "#test/infra/jobs/JobStage.ts"
import { addDelivery, served } from "../suppressions/SuppressionStage.ts"

/** A delivery of a new user's, and the path of its link. */
const delivered = Effect.fnUntraced(function* (address: string, url: string | null = null) {
  const { makeUser } = yield* TestServer
  const { id: owner } = yield* makeUser()
  const id = yield* addDelivery({ owner, address, url })
  const path = yield* Effect.map(UnsubscribeTokens, ({ pathOf }) => pathOf(id)).pipe(
    Effect.provide(UnsubscribeTokens.layer),
    Effect.provide(Secrets.layer)
  )
  return { owner, id, path }
})

/** Asks as a mail client does: no key, no cookie, no redirect followed. */
const ask = Effect.fnUntraced(function* (method: string, path: string) {
  const { url } = yield* TestServer
  return yield* Effect.promise(async () => {
    const body = new URLSearchParams({ "List-Unsubscribe": "One-Click" })
    const answer = await fetch(`${url}${path}`, {
      method,
      redirect: "manual",
      ...(method === "POST" && { body })
    })
    return { status: answer.status, text: await answer.text(), headers: answer.headers }
  })
})

const stateOf = Effect.fnUntraced(function* (owner: string, id: string) {
  const sql = yield* SqlClient
  const rows = yield* sql<{
    pattern: string
    scope: string
    reason: string
  }>`SELECT pattern, scope, reason FROM mail_suppressions WHERE user_id = ${owner}`
  const [delivery] = yield* sql<{
    at: Date | null
  }>`SELECT opted_out_at AS at FROM mail_deliveries WHERE id = ${id}`
  return { rows, at: delivery?.at ?? null }
})

const form = '<form method="post">'

layer(served, { excludeTestServices: true })("unsubscribe links", (it) => {
  it.effect("change nothing when they are looked at", () =>
    Effect.gen(function* () {
      const { id, owner, path } = yield* delivered("Ada@example.org", "https://shop.example.com/out?a=1&b=2")
      for (const method of ["GET", "HEAD", "GET"]) {
        const { headers, status, text } = yield* ask(method, path)
        assert.strictEqual(status, 200)
        if (method === "HEAD") continue
        assert.include(text, form)
        assert.include(text, "<bdi>Ada@example.org</bdi>")
        assert.include(text, "&lt;b&gt;news&lt;/b&gt;@example.com")
        assert.include(text, 'href="https://shop.example.com/out?a=1&amp;b=2"')
        assert.include(headers.get("content-security-policy") ?? "", "form-action 'self'")
        assert.strictEqual(headers.get("cache-control"), "private, no-store")
        assert.isNull(headers.get("set-cookie"))
      }
      assert.deepStrictEqual(yield* stateOf(owner, id), { rows: [], at: null })
    })
  )

  it.effect("suppress bulk mail to the address at once when they are posted to, without a redirect", () =>
    Effect.gen(function* () {
      const { id, owner, path } = yield* delivered("Ada@example.org")
      const other = yield* delivered("Ada@example.org")
      const { status, text } = yield* ask("POST", path)
      assert.strictEqual(status, 200)
      assert.include(text, "You are unsubscribed")
      const { at, rows } = yield* stateOf(owner, id)
      assert.deepStrictEqual(rows, [{ pattern: "ada@example.org", scope: "bulk", reason: "unsubscribe" }])
      assert.isNotNull(at)
      const of = (isBulk: boolean) =>
        Effect.flatMap(Suppressions, (all) => all.of(owner, ["ada@example.org"], isBulk)).pipe(
          Effect.provide(Suppressions.layer)
        )
      assert.deepStrictEqual([(yield* of(true)).size, (yield* of(false)).size], [1, 0])
      assert.deepStrictEqual(yield* stateOf(other.owner, other.id), { rows: [], at: null })
      assert.include((yield* ask("GET", path)).text, "You are unsubscribed")
      assert.include((yield* ask("GET", other.path)).text, form)
    })
  )

  it.effect("suppress once, however often they are posted to, and again after the owner removed it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { id, owner, path } = yield* delivered("bob@example.org")
      const posted = yield* Effect.forEach([1, 2, 3, 4, 5, 6], () => ask("POST", path), { concurrency: 6 })
      assert.deepStrictEqual([...new Set(posted.map(({ status }) => status))], [200])
      const { at, rows } = yield* stateOf(owner, id)
      assert.lengthOf(rows, 1)
      yield* sql`DELETE FROM mail_suppressions WHERE user_id = ${owner}`
      assert.include((yield* ask("GET", path)).text, form)
      yield* ask("POST", path)
      const again = yield* stateOf(owner, id)
      assert.lengthOf(again.rows, 1)
      assert.deepStrictEqual(again.at, at, "the first time counts")
    })
  )

  it.effect("are 404 where a character differs, is missing or more, and where their mail is gone", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { id, owner, path } = yield* delivered("ada@example.org")
      const other = yield* delivered("bob@example.org")
      const start = path.length - 50
      const forged = Array.from({ length: 50 }, (_, n) => start + n).map(
        (n) => path.slice(0, n) + (path[n] === "A" ? "B" : "A") + path.slice(n + 1)
      )
      const mixed = `/unsubscribe/${id}${other.path.slice(-24)}`
      const cut = [path.slice(0, -1), `${path}A`, "/unsubscribe/x", `/unsubscribe/${id}`]
      for (const wrong of [...forged, mixed, ...cut]) {
        const { status, text } = yield* ask("POST", wrong)
        assert.strictEqual(status, 404, wrong)
        assert.notInclude(text, "@example.org")
      }
      assert.strictEqual((yield* ask("GET", mixed)).status, 404)
      assert.deepStrictEqual(yield* stateOf(owner, id), { rows: [], at: null })
      yield* sql`DELETE FROM mail_deliveries WHERE id = ${id}`
      assert.strictEqual((yield* ask("POST", path)).status, 404)
      assert.deepStrictEqual((yield* stateOf(owner, id)).rows, [])
    })
  )

  it.effect("have the sender's own address told once, by the same POST", () =>
    Effect.gen(function* () {
      const own = yield* Effect.acquireRelease(
        Effect.promise(() => HttpReceiver.start({ status: 200 })),
        (one) => Effect.promise(() => one.close())
      )
      const { id, path } = yield* delivered("ada@example.org", `${own.origin}/out?who=ada`)
      yield* ask("GET", path)
      yield* ask("POST", path)
      yield* ask("POST", path)
      yield* ends("mail-unsubscribes", 1)
      const [ended] = yield* endedOf("mail-unsubscribes")
      assert.deepInclude(ended, { id, outcome: "done" })
      yield* ask("POST", path)
      const waiting = yield* waitingOf("mail-unsubscribes")
      assert.deepStrictEqual([waiting?.jobs, (yield* endedOf("mail-unsubscribes")).length], [0, 1])
      assert.deepStrictEqual(
        own.received.map(({ body, method, path: asked }) => [method, asked, body.toString()]),
        [["POST", "/out?who=ada", "List-Unsubscribe=One-Click"]]
      )
      const headers = own.received[0]?.headers
      assert.strictEqual(headers?.["content-type"], "application/x-www-form-urlencoded")
      assert.isUndefined(headers?.cookie)
      const { logged } = yield* TestServer
      assert.isEmpty(logged().filter((line) => line.includes(path)))
    })
  )
})
