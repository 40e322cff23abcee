import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { covers, type Scope } from "#schemas/core/Credential.ts"
import { type Answer, TestServer } from "#test/harness/TestServer.ts"

const keys = "/api/v1/keys"

describe("scopes", () => {
  const rows: ReadonlyArray<readonly [scopes: ReadonlyArray<string>, covered: ReadonlyArray<Scope>]> = [
    [[], []],
    [["full"], ["full", "read", "write", "read:photos", "write:photos", "replicate"]],
    [["read"], ["read", "read:photos", "read:full", "read:*"]],
    [["write"], ["write", "write:photos", "write:*"]],
    [["read:photos"], ["read:photos", "read:*"]],
    [
      ["read:photos", "write"],
      ["read:photos", "read:*", "write", "write:photos", "write:*"]
    ],
    // A bucket may have the name of a scope.
    [["read:full"], ["read:full", "read:*"]],
    [["replicate"], ["replicate"]]
  ]
  const needed: ReadonlyArray<Scope> = [
    "full",
    "read",
    "write",
    "read:photos",
    "read:photos2",
    "read:full",
    "write:photos",
    "read:*",
    "write:*",
    "replicate"
  ]
  for (const [scopes, covered] of rows)
    it(`${scopes.join(" and ") || "of none"} cover ${covered.join(", ") || "nothing"}`, () => {
      const expected = scopes.includes("full")
        ? needed
        : scopes.includes("read")
          ? [...covered, "read:photos2"]
          : covered
      assert.sameMembers(
        needed.filter((scope) => covers(scopes, scope)),
        [...expected]
      )
    })
})

const fieldOf = ({ json, status }: Answer): readonly [number, string] => [
  status,
  (json as { readonly error: { readonly param: string } }).error.param
]

layer(TestServer.shared, { excludeTestServices: true })("the scopes of a key", (it) => {
  it.effect("are everything by default, and are given, changed and listed", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const make = (fields: object) =>
        ask("POST", keys, { key, json: { name: "k", kind: "account", ...fields } })
      assert.deepInclude((yield* make({})).json, { scopes: ["full"] })
      const most = Array.from({ length: 100 }, (_, bucket) => `read:${bucket}`)
      for (const scopes of [
        ["read"],
        ["write", "read:a.B_c-9"],
        [`write:${"b".repeat(100)}`],
        ["replicate"],
        most
      ]) {
        const made = yield* make({ scopes })
        assert.deepInclude(made.json, { scopes }, String(made.status))
      }
      const router = yield* make({ kind: "router" })
      const { id } = router.json as { readonly id: string }
      assert.deepInclude(router.json, { scopes: [] })
      const account = (yield* make({ scopes: ["read"] })).json as { readonly id: string }
      const changed = yield* ask("PATCH", `${keys}/${account.id}`, { key, json: { scopes: ["write"] } })
      assert.deepInclude(changed.json, { scopes: ["write"] })
      const { data } = (yield* ask("GET", keys, { key })).json as {
        readonly data: ReadonlyArray<{ readonly id: string; readonly scopes: ReadonlyArray<string> }>
      }
      assert.deepStrictEqual(data.find((one) => one.id === account.id)?.scopes, ["write"])
      for (const [answer, field] of [
        [yield* make({ kind: "router", scopes: ["read"] }), "scopes"],
        [yield* ask("PATCH", `${keys}/${id}`, { key, json: { scopes: ["read"] } }), "scopes"],
        [yield* make({ scopes: [] }), "scopes"],
        [yield* make({ scopes: [...most, "write"] }), "scopes"],
        [yield* make({ scopes: "full" }), "scopes"],
        [yield* make({ scopes: null }), "scopes"],
        [yield* make({ scopes: ["full", "all"] }), "scopes[1]"],
        [yield* make({ scopes: ["read:"] }), "scopes[0]"],
        [yield* make({ scopes: ["read:a/b"] }), "scopes[0]"],
        [yield* make({ scopes: ["full:a"] }), "scopes[0]"],
        [yield* make({ scopes: ["replicate:a"] }), "scopes[0]"],
        [yield* make({ scopes: [`read:${"b".repeat(101)}`] }), "scopes[0]"]
      ] as const)
        assert.deepStrictEqual(fieldOf(answer), [400, field])
    })
  )

  it.effect("without full open health, stats and the own record, also an administrator's", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const admin = yield* makeUser("admin")
      const { key } = yield* makeKey({ scopes: ["read", "write"] }, admin.key)
      for (const path of ["/health", "/stats"])
        assert.strictEqual((yield* ask("GET", `/api/v1${path}`, { key })).status, 200, path)
      const { users } = (yield* ask("GET", "/api/v1/users", { key })).json as {
        readonly users: ReadonlyArray<{ readonly id: string }>
      }
      assert.deepStrictEqual(
        users.map(({ id }) => id),
        [admin.id]
      )
    })
  )

  it.effect(
    "without full are refused elsewhere by name, on raw routes too, and before the body is read",
    () =>
      Effect.gen(function* () {
        const { ask, makeKey, makeUser } = yield* TestServer
        const { key: own } = yield* makeUser()
        const { key } = yield* makeKey({ scopes: ["read"] }, own)
        const message = "This takes the scope full"
        const flat = yield* ask("POST", "/api/v1/sites", { key, body: "{" })
        assert.deepStrictEqual([flat.status, flat.json], [403, { error: message }])
        const nested = yield* ask("POST", "/api/v1/chat/completions", { key, json: {} })
        assert.deepStrictEqual(
          [nested.status, nested.json],
          [403, { error: { message, type: "permission_error", code: null, param: null } }]
        )
        assert.strictEqual(
          (yield* ask("POST", keys, { key, json: { name: "k", kind: "account" } })).status,
          403
        )
      })
  )
})
