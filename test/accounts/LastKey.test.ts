import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { AppConfig } from "#src/Config.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const keys = "/api/v1/keys"
const users = "/api/v1/admin/users"
const soon = (): string => new Date(Date.now() + 3_600_000).toISOString()

const lastKey = {
  error: {
    message: "The last key of the last administrator stays; make another one first",
    type: "conflict_error",
    code: "last_administrator_key",
    param: null
  }
}

const options = { excludeTestServices: true } as const

/** The id of the key that the first boot made, and its user's. */
const firstKey = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [row] = yield* sql<{ id: string; user_id: string }>`
    SELECT id, user_id FROM keys WHERE name = 'admin' AND revoked_at IS NULL`
  assert.isDefined(row)
  return row
})

layer(TestServer.own(), options)("the last administrator's last key", (it) => {
  it.effect(
    "stays: it is neither revoked, nor made to expire, nor narrowed, whatever other keys there are",
    () =>
      Effect.gen(function* () {
        const { ask, makeKey, makeUser } = yield* TestServer
        const { id } = yield* firstKey
        yield* makeUser()
        yield* makeKey({ kind: "router" })
        yield* makeKey({ scopes: ["read", "write"] })
        const expired = yield* makeKey({ expires_at: soon() })
        const sql = yield* SqlClient
        yield* sql`UPDATE keys SET expires_at = now() - interval '1 s' WHERE id = ${expired.id}`
        for (const answer of [
          yield* ask("DELETE", `${keys}/${id}`),
          yield* ask("PATCH", `${keys}/${id}`, { json: { expires_at: soon() } }),
          yield* ask("PATCH", `${keys}/${id}`, { json: { scopes: ["read", "write"] } })
        ]) {
          assert.deepStrictEqual([answer.status, answer.json], [409, lastKey])
        }
        assert.strictEqual((yield* ask("PATCH", `${keys}/${id}`, { json: { name: "other" } })).status, 200)
        yield* sql`UPDATE keys SET name = 'admin' WHERE id = ${id}`
      })
  )

  it.effect("goes once there is another, and of two that go at once one stays", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { id } = yield* firstKey
      const others = yield* Effect.all([makeKey(), makeKey(), makeKey()])
      const gone = yield* Effect.all(
        [id, ...others.map((other) => other.id)].map((one) => ask("DELETE", `${keys}/${one}`)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(gone.map(({ status }) => status).toSorted(), [200, 200, 200, 409])
    })
  )
})

layer(TestServer.own(), options)("the last administrator with a key", (it) => {
  it.effect("stays one, though there is another administrator: that one has no key", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { user_id: first } = yield* firstKey
      const made = yield* ask("POST", users, { json: { email: "b@example.org", name: "B", role: "admin" } })
      const { id: second } = made.json as { id: string }
      const refused = [409, { error: "The last administrator with a key stays one" }]
      const demote = { json: { role: "user" } }
      for (const answer of [
        yield* ask("PATCH", `${users}/${first}`, demote),
        yield* ask("DELETE", `${users}/${first}`)
      ]) {
        assert.deepStrictEqual([answer.status, answer.json], refused)
      }
      const { key } = yield* makeKey({ user_id: second })
      assert.strictEqual((yield* ask("PATCH", `${users}/${first}`, { ...demote, key })).status, 200)
    })
  )
})

layer(TestServer.own(), options)("admin.json", (it) => {
  it.effect("names no key that is revoked, and keeps where the server is", () =>
    Effect.gen(function* () {
      const { adminKey, ask, makeKey } = yield* TestServer
      const { dataDir } = yield* AppConfig
      const file = join(dataDir, "admin.json")
      assert.isTrue(existsSync(file))
      const { key } = yield* makeKey()
      const { id } = yield* firstKey
      assert.include(readFileSync(file, "utf8"), adminKey)
      assert.strictEqual((yield* ask("DELETE", `${keys}/${id}`, { key })).status, 200)
      assert.deepStrictEqual(Object.keys(JSON.parse(readFileSync(file, "utf8"))), ["url"])
    })
  )
})

layer(TestServer.own(), options)("admin.json of another boot", (it) => {
  it.effect("names none of a user who is no administrator any more", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { dataDir } = yield* AppConfig
      const [row] = yield* sql<{ id: string }>`SELECT id FROM users WHERE email = 'admin@localhost'`
      const other = yield* makeUser("admin")
      assert.strictEqual((yield* ask("DELETE", `${users}/${row?.id}`, { key: other.key })).status, 200)
      assert.deepStrictEqual(Object.keys(JSON.parse(readFileSync(join(dataDir, "admin.json"), "utf8"))), [
        "url"
      ])
    })
  )
})
