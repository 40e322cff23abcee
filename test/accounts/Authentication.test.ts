import { assert, layer } from "@effect/vitest"
import { createHash } from "node:crypto"
import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer, type Answer, textOf } from "#test/harness/TestServer.ts"

const flat401 = { error: "Invalid or missing API key" }
const nested401 = {
  error: {
    message: "Invalid or missing API key",
    type: "authentication_error",
    code: "invalid_api_key",
    param: null
  }
}

layer(TestServer.shared, { excludeTestServices: true })("authentication", (it) => {
  it.effect(
    "answers 401, flat or nested by the endpoint's family, to a missing, malformed or unknown key",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const unknown = `sk_${"0".repeat(40)}`
        for (const key of [
          "",
          unknown,
          `sk_mr_${"0".repeat(40)}`,
          "sk_",
          "x",
          `${unknown}1`,
          `ssk_${"0".repeat(40)}`
        ]) {
          const flat = yield* ask("GET", "/api/v1/health", { key })
          assert.deepStrictEqual([flat.status, flat.json], [401, flat401], key)
          const nested = yield* ask("GET", "/api/v1/keys", { key })
          assert.deepStrictEqual([nested.status, nested.json], [401, nested401], key)
          assert.strictEqual(flat.headers.get("www-authenticate"), "Bearer")
        }
      })
  )

  it.effect("takes the scheme in any case, and no other scheme", () =>
    Effect.gen(function* () {
      const { adminKey, ask } = yield* TestServer
      for (const [authorization, status] of [
        [`bearer ${adminKey}`, 200],
        [`BEARER ${adminKey}`, 200],
        [`Bearer  ${adminKey}`, 200],
        [`Basic ${adminKey}`, 401],
        [adminKey, 401],
        [`Bearer${adminKey}`, 401]
      ] as const) {
        const answer = yield* ask("GET", "/api/v1/health", { key: "", headers: { authorization } })
        assert.strictEqual(answer.status, status, authorization.replace(adminKey, "<key>"))
      }
    })
  )

  it.effect("ends at once where a key is revoked", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { id, key } = yield* makeKey()
      assert.deepStrictEqual((yield* ask("DELETE", `/api/v1/keys/${id}`)).json, { id, deleted: true })
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key })).status, 401)
      assert.strictEqual((yield* ask("DELETE", `/api/v1/keys/${id}`)).status, 404)
    })
  )

  it.effect("ends with the key's owner, and their sites with them", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const site = yield* ask("POST", "/api/v1/sites", {
        key: person.key,
        json: { name: "S", domain: "a.example" }
      })
      assert.deepStrictEqual((yield* ask("DELETE", `/api/v1/admin/users/${person.id}`)).json, {
        deleted: true
      })
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: person.key })).status, 401)
      const secret = textOf(site, "secret")
      yield* statusBecomes(401, ask("POST", "/api/v1/collect", { key: secret, json: {} }))
    })
  )

  it.effect("keeps the hash of a key and its first 12 characters, never the key", () =>
    Effect.gen(function* () {
      const { makeKey } = yield* TestServer
      const sql = yield* SqlClient
      const { id, key } = yield* makeKey()
      const [row] = yield* sql<{ prefix: string; hash: Uint8Array; text: string }>`
        SELECT prefix, hash, keys::text AS text FROM keys WHERE id = ${id}`
      assert.strictEqual(row?.prefix, key.slice(0, 12))
      assert.deepStrictEqual(Buffer.from(row?.hash ?? []), createHash("sha256").update(key).digest())
      assert.notInclude(row?.text ?? key, key.slice(12))
    })
  )
})

/** Another process's change is read from Postgres within a second. */
const statusBecomes = (status: number, ask: Effect.Effect<Answer>) =>
  ask.pipe(
    Effect.repeat({ until: (answer) => answer.status === status, schedule: Schedule.spaced("20 millis") }),
    Effect.timeout("1 second")
  )

layer(TestServer.own(), { excludeTestServices: true })("a key", (it) => {
  it.effect("ends with the instant of the key's expiry, and not a millisecond before", () =>
    Effect.gen(function* () {
      const { ask, makeKey, stopClockAt } = yield* TestServer
      const instant = Date.now() + 3_600_000
      const { key } = yield* makeKey({ expires_at: new Date(instant).toISOString() })
      const statuses = yield* Effect.forEach([instant - 1, instant, instant + 1], (millis) =>
        Effect.suspend(() => {
          stopClockAt(millis)
          return Effect.map(ask("GET", "/api/v1/health", { key }), ({ status }) => status)
        })
      )
      stopClockAt(undefined)
      assert.deepStrictEqual(statuses, [200, 401, 401])
    })
  )
})
