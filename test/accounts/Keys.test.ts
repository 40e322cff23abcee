import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer, type Answer, textOf } from "#test/harness/TestServer.ts"

const keys = "/api/v1/keys"
const tomorrow = (): string => new Date(Date.now() + 86_400_000).toISOString()
const collection = `col_${"0".repeat(22)}`

/** Makes the collection, by default of the first administrator. */
const makeCollection = (id: string, owner?: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`INSERT INTO collections (id, user_id, name, slug, auto_route, models)
      SELECT ${id}, ${owner ?? sql.literal("id")}, 'Collection', ${id}, true, '{}' FROM users
      WHERE role = 'admin' ORDER BY created_at LIMIT 1 ON CONFLICT DO NOTHING`
  )

/** Answers of the OpenAI form name the field both in the message and in `param`. */
const assertInvalid = (answer: Answer, field: string, message: RegExp, note: string): void => {
  const { error } = answer.json as { error: { message: string; type: string; code: string; param: string } }
  assert.deepStrictEqual([answer.status, error.param], [400, field], note)
  assert.deepStrictEqual([error.type, error.code], ["invalid_request_error", "invalid_value"], note)
  assert.match(error.message, message, note)
}

layer(TestServer.shared, { excludeTestServices: true })("keys", (it) => {
  it.effect("are shown once when they are made, with 201, and never again", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      yield* makeCollection(collection)
      const expires = tomorrow()
      const fields = {
        name: "ci",
        kind: "router",
        models: ["a/b"],
        collections: [collection],
        expires_at: expires,
        spend_limit_usd: 12.5,
        rate_limit_per_minute: 30
      }
      const made = yield* ask("POST", keys, { json: fields })
      assert.strictEqual(made.status, 201)
      const { key, ...resource } = made.json as {
        key: string
        prefix: string
        id: string
        created_at: string
      }
      assert.match(key, /^sk_mr_[0-9A-Za-z]{40}$/)
      assert.match(resource.id, /^key_[0-9A-Za-z]{22}$/)
      assert.deepInclude(resource, { ...fields, prefix: key.slice(0, 12) })
      assert.match(resource.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      const listed = yield* ask("GET", keys)
      assert.notInclude(Buffer.from(listed.bytes).toString(), key)
      const { data } = listed.json as { data: ReadonlyArray<{ id: string }> }
      assert.deepStrictEqual(
        data.find(({ id }) => id === resource.id),
        resource
      )
    })
  )

  it.effect("have every field's limits, and say which one was broken", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      yield* makeCollection(collection)
      const create = (fields: object) => ask("POST", keys, { json: { name: "k", kind: "router", ...fields } })
      const many = (count: number, value: string) => Array.from({ length: count }, () => value)
      for (const fields of [
        { name: "n" },
        { name: "n".repeat(100) },
        { name: "Ключ 🔑" },
        { models: [] },
        { models: ["m".repeat(200)] },
        { models: many(1000, "a/b") },
        { collections: [collection] },
        {
          models: null,
          collections: null,
          expires_at: null,
          spend_limit_usd: null,
          rate_limit_per_minute: null
        },
        { expires_at: "9999-12-31T23:59:59+00:00" },
        { spend_limit_usd: 0 },
        { spend_limit_usd: 1_000_000_000 },
        { rate_limit_per_minute: 1 },
        { rate_limit_per_minute: 1_000_000 }
      ]) {
        assert.strictEqual((yield* create(fields)).status, 201, JSON.stringify(fields).slice(0, 80))
      }
      for (const [fields, field, message] of [
        [{ name: "" }, "name", /^name: expected text of 1 to 100 characters/],
        [{ name: "n".repeat(101) }, "name", /^name: expected text of 1 to 100 characters/],
        [{ name: "a\nb" }, "name", /on one line$/],
        [{ name: "\u0000" }, "name", /without NUL characters$/],
        [{ name: "\ud800" }, "name", /well-formed Unicode/],
        [{ name: 7 }, "name", /^name: expected text$/],
        [{ name: null }, "name", /^name: expected text$/],
        [{ kind: "site" }, "kind", /^kind: expected "account" \| "router"$/],
        [{ models: "a/b" }, "models", /^models: /],
        [{ models: [""] }, "models[0]", /^models\[0\]: expected text of 1 to 200/],
        [{ models: ["a", "m".repeat(201)] }, "models[1]", /^models\[1\]: /],
        [{ models: many(1001, "a/b") }, "models", /at most 1000 model ids/],
        [{ collections: ["col_x"] }, "collections[0]", /id of a collection/],
        [{ expires_at: "tomorrow" }, "expires_at", /ISO-8601/],
        [{ expires_at: "2030-01-01" }, "expires_at", /ISO-8601/],
        [{ expires_at: "2030-02-30T00:00:00Z" }, "expires_at", /ISO-8601/],
        [
          { expires_at: "2020-01-01T00:00:00Z" },
          "expires_at",
          /^expires_at: expected an instant in the future$/
        ],
        [{ spend_limit_usd: -0.01 }, "spend_limit_usd", /between 0 and 1000000000/],
        [{ spend_limit_usd: 1_000_000_000.01 }, "spend_limit_usd", /between 0 and 1000000000/],
        [{ spend_limit_usd: "1" }, "spend_limit_usd", /^spend_limit_usd: /],
        [{ rate_limit_per_minute: 0 }, "rate_limit_per_minute", /an integer between 1 and 1000000$/],
        [{ rate_limit_per_minute: 1_000_001 }, "rate_limit_per_minute", /an integer between 1 and 1000000$/],
        [{ rate_limit_per_minute: 1.5 }, "rate_limit_per_minute", /an integer$/],
        [{ user_id: "usr_x" }, "user_id", /id of a user/]
      ] as const) {
        assertInvalid(yield* create(fields), field, message, JSON.stringify(fields).slice(0, 80))
      }
      assertInvalid(
        yield* ask("POST", keys, { json: { kind: "account" } }),
        "name",
        /^name: is required$/,
        "no name"
      )
    })
  )

  it.effect(
    "are scoped to collections of their owner alone, when they are made and when they are changed",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const nowhere = `col_${"1".repeat(22)}`
        const others = `col_${"2".repeat(22)}`
        const email = `other-${Date.now()}@example.org`
        const other = yield* ask("POST", "/api/v1/admin/users", { json: { email, name: "Other" } })
        yield* makeCollection(collection)
        yield* makeCollection(others, (other.json as { id: string }).id)
        const made = yield* ask("POST", keys, {
          json: { name: "k", kind: "router", collections: [collection] }
        })
        assert.strictEqual(made.status, 201)
        const own = `${keys}/${(made.json as { id: string }).id}`
        for (const missing of [nowhere, others]) {
          const fields = { collections: [collection, missing] }
          for (const answer of [
            yield* ask("POST", keys, { json: { name: "k", kind: "router", ...fields } }),
            yield* ask("PATCH", own, { json: fields })
          ]) {
            assertInvalid(answer, "collections[1]", /a collection of the key's owner$/, missing)
          }
        }
        const { json, status } = yield* ask("PATCH", own, { json: { collections: [] } })
        assert.deepStrictEqual([status, (json as { collections: unknown }).collections], [200, []])
      })
  )

  it.effect("of an account take none of a router key's restrictions", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { id } = yield* makeKey({ expires_at: tomorrow(), rate_limit_per_minute: 5, models: null })
      for (const fields of [{ models: ["a/b"] }, { collections: [collection] }, { spend_limit_usd: 1 }]) {
        const [field = ""] = Object.keys(fields)
        const json = { name: "k", kind: "account", ...fields }
        assertInvalid(yield* ask("POST", keys, { json }), field, /only router keys take it/, field)
        assertInvalid(
          yield* ask("PATCH", `${keys}/${id}`, { json: fields }),
          field,
          /only router keys/,
          field
        )
      }
    })
  )

  it.effect("that another process made a moment ago are held to their kind as well", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const sql = yield* SqlClient
      const { id } = yield* makeKey()
      const other = id
        .split("")
        .toReversed()
        .join("")
        .replace(/^(.*)_yek$/, "key_$1")
      yield* sql`INSERT INTO keys (id, user_id, name, kind, prefix, hash)
        SELECT ${other}, user_id, 'elsewhere', kind, prefix, sha256(hash) FROM keys WHERE id = ${id}`
      const changed = yield* ask("PATCH", `${keys}/${other}`, { json: { models: ["a/b"] } })
      assertInvalid(changed, "models", /only router keys take it/, "models")
    })
  )

  it.effect("change only where they are told to, and null lifts a restriction", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { id } = yield* makeKey({ kind: "router", models: ["a/b"], spend_limit_usd: 3 })
      const path = `${keys}/${id}`
      const before = (yield* ask("PATCH", path, { json: {} })).json as object
      assert.deepInclude(before, { models: ["a/b"], spend_limit_usd: 3 })
      const changed = yield* ask("PATCH", path, { json: { name: "new", models: null } })
      assert.deepStrictEqual(changed.json, { ...before, name: "new", models: null })
      const kind = yield* ask("PATCH", path, { json: { name: "newer", kind: "account" } })
      assertInvalid(kind, "kind", /is not known here/, "a key keeps its kind")
    })
  )

  it.effect("are listed newest first, in pages", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      for (const name of ["1", "2", "3"]) yield* makeKey({ name }, key)
      const namesOf = (query: string) =>
        Effect.map(ask("GET", `${keys}?${query}`, { key }), ({ json }) =>
          (json as { data: ReadonlyArray<{ name: string }> }).data.map(({ name }) => name)
        )
      assert.deepStrictEqual(yield* namesOf(""), ["3", "2", "1", "test"])
      assert.deepStrictEqual(yield* namesOf("limit=2"), ["3", "2"])
      assert.deepStrictEqual(yield* namesOf("limit=2&offset=2"), ["1", "test"])
      assert.deepStrictEqual(yield* namesOf("offset=9"), [])
    })
  )

  it.effect("that were revoked are not listed and do not come back", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const made = yield* makeKey({}, key)
      yield* ask("DELETE", `${keys}/${made.id}`, { key })
      assert.strictEqual(
        (yield* ask("PATCH", `${keys}/${made.id}`, { key, json: { name: "x" } })).status,
        404
      )
      const listed = yield* ask("GET", keys, { key })
      assert.notInclude(Buffer.from(listed.bytes).toString(), made.id)
      assert.strictEqual(textOf(listed, "object"), "list")
    })
  )
})
