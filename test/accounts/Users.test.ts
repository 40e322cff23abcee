import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer, textOf } from "#test/harness/TestServer.ts"

const admin = "/api/v1/admin/users"
const users = "/api/v1/users"
const nobody = `usr_${"0".repeat(22)}`

layer(TestServer.shared, { excludeTestServices: true })("users", (it) => {
  it.effect("are all listed for an administrator, page by page, ten at a time unless told otherwise", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      for (let made = 0; made < 11; made++) yield* makeUser()
      const first = (yield* ask("GET", users)).json as {
        users: ReadonlyArray<object>
        meta: Record<string, unknown> & { readonly total: number }
      }
      assert.strictEqual(first.users.length, 10)
      assert.deepInclude(first.meta, { limit: 10, offset: 0, apiKey: "admin" })
      let seen = first.users.length
      // Other tests of this server made users, too.
      while (seen < first.meta.total) {
        const next = (yield* ask("GET", `${users}?limit=100&offset=${seen}`)).json as typeof first
        assert.strictEqual(next.users.length, Math.min(100, first.meta.total - seen))
        seen += next.users.length
      }
      assert.deepStrictEqual(Object.keys(first.users[0] ?? {}), [
        "id",
        "email",
        "name",
        "role",
        "emailVerified",
        "createdAt"
      ])
    })
  )

  it.effect("see their own record only, and their limit and offset are ignored, whatever they say", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      for (const query of ["", "?limit=1&offset=5", "?limit=0", "?limit=ten&offset=-1&offset=x"]) {
        const answer = yield* ask("GET", users + query, { key })
        assert.strictEqual(answer.status, 200, query)
        const { meta, users: seen } = answer.json as { users: ReadonlyArray<{ id: string }>; meta: object }
        assert.deepStrictEqual(
          [seen.map((user) => user.id), meta],
          [[id], { limit: 10, offset: 0, total: 1, apiKey: "test" }]
        )
      }
    })
  )

  it.effect("are not shown to a router key of an administrator: such keys go into apps", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const other = yield* makeUser()
      const { key } = yield* makeKey({ kind: "router" })
      const mine = textOf(yield* ask("GET", "/api/v1/health"), "userId")
      const { json } = yield* ask("GET", `${users}?limit=100&offset=0`, { key })
      const { users: seen, meta } = json as { users: ReadonlyArray<{ id: string }>; meta: { total: number } }
      assert.deepStrictEqual([seen.map(({ id }) => id), meta.total], [[mine], 1])
      const topUps = yield* ask("GET", `/api/v1/credits/topups?user_id=${other.id}`, { key })
      assert.strictEqual(topUps.status, 403)
    })
  )

  it.effect("are validated and echoed by POST /users for administrators, and nothing is made", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const total = Effect.map(
        ask("GET", users),
        ({ json }) => (json as { meta: { total: number } }).meta.total
      )
      const { key } = yield* makeUser()
      const before = yield* total
      const json = { email: "echo@example.org", name: "Echo" }
      const echo = yield* ask("POST", users, { json })
      assert.strictEqual(echo.status, 200)
      assert.deepInclude(echo.json, { requestedData: { ...json, role: "user" }, apiKey: "admin" })
      assert.isString(textOf(echo, "message"))
      assert.strictEqual(yield* total, before)
      const refused = yield* ask("POST", users, { key, json })
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [403, { error: "Only administrators may do this" }]
      )
    })
  )

  it.effect("have every field's limits, at the stub as at creation", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const local = "l".repeat(64)
      const valid = { email: "limits@example.org", name: "L" }
      for (const fields of [
        { name: "n".repeat(200) },
        { email: `${local}@${"d".repeat(189)}` },
        { email: "ünï@exämple.org" },
        { role: "admin" }
      ]) {
        assert.strictEqual(
          (yield* ask("POST", users, { json: { ...valid, ...fields } })).status,
          200,
          JSON.stringify(fields)
        )
      }
      for (const [fields, error] of [
        [{ email: undefined }, "email: is required"],
        [{ name: undefined }, "name: is required"],
        [{ email: 1 }, "email: expected text"],
        [{ email: "" }, "email: expected an e-mail address"],
        [{ email: "a b@example.org" }, "email: expected an e-mail address"],
        [{ email: "a@b@c" }, "email: expected an e-mail address"],
        [{ email: "a\u0000@b" }, "email: expected text without NUL characters"],
        [{ email: `${local}l@example.org` }, "email: expected an e-mail address"],
        [
          { email: `${local}@${"d".repeat(190)}` },
          "email: expected an e-mail address of at most 254 characters"
        ],
        [{ name: "" }, "name: expected text of 1 to 200 characters on one line"],
        [{ name: "n".repeat(201) }, "name: expected text of 1 to 200 characters on one line"],
        [{ name: "a\u0007" }, "name: expected text of 1 to 200 characters on one line"],
        [{ extra: { nested: [1] } }, "extra: is not known here"],
        [{ role: "root" }, 'role: expected "user" | "admin"'],
        [{ role: null }, 'role: expected "user" | "admin"']
      ] as const) {
        for (const path of [users, admin]) {
          const answer = yield* ask("POST", path, { json: { ...valid, ...fields } })
          assert.deepStrictEqual([answer.status, answer.json], [400, { error }], JSON.stringify(fields))
        }
      }
    })
  )

  it.effect("are made, read, changed and deleted by administrators", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const made = yield* ask("POST", admin, { json: { email: "Grace@Example.org", name: "Grace" } })
      assert.strictEqual(made.status, 201)
      const user = made.json as Record<string, unknown>
      assert.match(String(user["id"]), /^usr_[0-9A-Za-z]{22}$/)
      assert.deepInclude(user, {
        email: "Grace@Example.org",
        name: "Grace",
        role: "user",
        emailVerified: null
      })
      const path = `${admin}/${String(user["id"])}`
      assert.deepStrictEqual((yield* ask("GET", path)).json, user)
      const renamed = yield* ask("PATCH", path, { json: { name: "Grace H." } })
      assert.deepStrictEqual(renamed.json, { ...user, name: "Grace H." })
      assert.deepStrictEqual((yield* ask("PATCH", path, { json: {} })).json, renamed.json)
      const verified = yield* ask("PATCH", path, { json: { emailVerified: true } })
      assert.match(textOf(verified, "emailVerified"), /^\d{4}-.*\.\d{3}Z$/)
      const unverified = yield* ask("PATCH", path, { json: { emailVerified: false } })
      assert.deepInclude(unverified.json, { emailVerified: null })
      assert.deepStrictEqual((yield* ask("DELETE", path)).json, { deleted: true })
      for (const method of ["GET", "DELETE"]) {
        const gone = yield* ask(method, path)
        assert.deepStrictEqual([gone.status, gone.json], [404, { error: "User not found" }])
      }
    })
  )

  it.effect("keep their e-mail address for themselves, in any case of its letters", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const create = (email: string) => ask("POST", admin, { json: { email, name: "T" } })
      const first = yield* create("taken@example.org")
      const again = yield* create("TAKEN@example.org")
      assert.deepStrictEqual([again.status, again.json], [409, { error: "email: already taken" }])
      const other = yield* create("other@example.org")
      const change = { json: { email: "Taken@Example.org" } }
      assert.strictEqual((yield* ask("PATCH", `${admin}/${textOf(other, "id")}`, change)).status, 409)
      yield* ask("DELETE", `${admin}/${textOf(first, "id")}`)
      assert.strictEqual((yield* create("taken@example.org")).status, 201, "free again when its user is gone")
    })
  )

  it.effect("are managed by nobody but administrators, whose role counts at once", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      for (const [method, path, json] of [
        ["POST", admin, { email: "x@example.org", name: "X" }],
        // Before the body is looked at.
        ["POST", admin, {}],
        ["GET", `${admin}/${id}`, undefined],
        ["PATCH", `${admin}/${id}`, { role: "admin" }],
        ["DELETE", `${admin}/${id}`, undefined],
        ["DELETE", `${admin}/${nobody}`, undefined]
      ] as const) {
        const answer = yield* ask(method, path, { key, ...(json === undefined ? {} : { json }) })
        assert.deepStrictEqual(
          [answer.status, answer.json],
          [403, { error: "Only administrators may do this" }]
        )
      }
      yield* ask("PATCH", `${admin}/${id}`, { json: { role: "admin" } })
      assert.strictEqual((yield* ask("GET", `${admin}/${id}`, { key })).status, 200)
    })
  )
})

// It has one administrator, and no other file makes more.
layer(TestServer.own(), { excludeTestServices: true })("administrators", (it) => {
  it.effect("are never lost to the last one", () =>
    Effect.gen(function* () {
      const { adminKey, ask, makeUser } = yield* TestServer
      const adminId = textOf(yield* ask("GET", "/api/v1/health"), "userId")
      const conflict = [409, { error: "The last administrator stays one" }]
      const demoted = yield* ask("PATCH", `${admin}/${adminId}`, { json: { role: "user" } })
      assert.deepStrictEqual([demoted.status, demoted.json], conflict)
      const deleted = yield* ask("DELETE", `${admin}/${adminId}`)
      assert.deepStrictEqual([deleted.status, deleted.json], conflict)

      const second = yield* makeUser("admin")
      const bothAtOnce = yield* Effect.all(
        [
          ask("PATCH", `${admin}/${adminId}`, { key: second.key, json: { role: "user" } }),
          ask("PATCH", `${admin}/${second.id}`, { key: adminKey, json: { role: "user" } })
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(bothAtOnce.map(({ status }) => status).toSorted(), [200, 409])
      const who = bothAtOnce[0]?.status === 200 ? second.key : adminKey
      const restore = bothAtOnce[0]?.status === 200 ? adminId : second.id
      assert.strictEqual(
        (yield* ask("PATCH", `${admin}/${restore}`, { key: who, json: { role: "admin" } })).status,
        200
      )
    })
  )
})
