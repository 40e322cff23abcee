import { randomBytes } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { Links } from "#src/notify/Links.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, live, makeStage, sent } from "#test/notify/Stage.ts"

const pagePolicy =
  "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'"

const links = Links.layer.pipe(Layer.provide(Secrets.layer))

/** A digest of two messages, and its page. */
const digested = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { ask } = yield* TestServer
  const { digest } = yield* Links
  const stage = yield* makeStage
  yield* stage.project({ name: "Builds" })
  const key = yield* stage.projectKey()
  const ids: Array<string> = []
  for (const message of ["one <script>x</script>", "two"])
    ids.push(
      (yield* sent(key, { message, title: "T<b>", url: "https://example.com/<x>" })).messages[0]?.id ?? ""
    )
  const id = newId("dig")
  const { hash, token } = digest(id)
  yield* sql`INSERT INTO digests (id, subscriber_id, due_at, link_hash, items, messages)
    VALUES (${id}, 'sbr', now(), ${hash}, 5, ${ids}::text[])`
  const get = (path = `/n/d/${token}`, method = "GET") =>
    Effect.map(ask(method, path, { key: "" }), (answer) => ({
      ...answer,
      text: Buffer.from(answer.bytes).toString()
    }))
  return { ask, get, id, ids, sql, stage, token }
}).pipe(Effect.provide(links))

layer(TestServer.shared, live)("the page of a digest", (it) => {
  it.effect(
    "shows its messages to those who have its link, with the policy of pages and no markup of others",
    () =>
      Effect.gen(function* () {
        const { get } = yield* digested
        const page = yield* get()
        assert.strictEqual(page.status, 200)
        assert.deepInclude(Object.fromEntries(page.headers), {
          "content-type": "text/html; charset=utf-8",
          "content-security-policy": pagePolicy,
          "cache-control": "private, no-cache",
          "referrer-policy": "no-referrer",
          "x-content-type-options": "nosniff",
          "x-robots-tag": "noindex, nofollow"
        })
        for (const part of [
          "<h1>2 messages</h1>",
          "one &lt;script&gt;",
          "T&lt;b&gt;",
          "Builds",
          "had 3 more"
        ])
          assert.include(page.text, part)
        assert.notInclude(page.text, "<script")
        const head = yield* get(undefined, "HEAD")
        assert.deepStrictEqual([head.status, head.text], [200, ""])
      })
  )

  it.effect("of an unknown or mangled link is 404, and so is one whose messages are all gone", () =>
    Effect.gen(function* () {
      const { ask, get, ids, stage, token } = yield* digested
      for (const path of ["/n/d/x", "/n/d/", `/n/d/${token}x`, `/n/d/${token}/`, `/n/d/${"A".repeat(40)}`]) {
        const page = yield* get(path)
        assert.strictEqual(page.status, 404, path)
        assert.strictEqual(page.headers.get("content-security-policy"), pagePolicy)
      }
      yield* ask("DELETE", `${api}/messages/${ids[0]}`, { key: stage.key })
      const one = yield* get()
      assert.include(one.text, "<h1>1 message</h1>")
      assert.notInclude(one.text, "one &lt;")
      yield* ask("DELETE", `${api}/projects/builds`, { key: stage.key })
      assert.strictEqual((yield* get()).status, 404)
    })
  )

  it.effect("is 410 once it is older than messages are kept", () =>
    Effect.gen(function* () {
      const { get, id, sql } = yield* digested
      yield* sql`UPDATE digests SET created_at = now() - interval '89 days' WHERE id = ${id}`
      assert.strictEqual((yield* get()).status, 200)
      yield* sql`UPDATE digests SET created_at = now() - interval '90 days' WHERE id = ${id}`
      const gone = yield* get()
      assert.deepStrictEqual([gone.status, gone.headers.get("content-security-policy")], [410, pagePolicy])
      yield* sql`UPDATE digests SET link_hash = ${randomBytes(32)} WHERE id = ${id}`
      assert.strictEqual((yield* get()).status, 404)
    })
  )
})
