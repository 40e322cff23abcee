import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { hashOf, newId, newSecret } from "#src/infra/crypto/Tokens.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { api, faultOf, invalidKey, live, makeStage, otherKind, send, sent } from "./Stage.ts"

const keys = `${api}/project-keys`

layer(TestServer.shared, live)("project keys", (it) => {
  it.effect("are shown once, listed without themselves, changed and revoked at once", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project } = yield* makeStage
      const [one, two] = [yield* project({ slug: "one" }), yield* project({ slug: "two" })]
      const made = yield* ask("POST", keys, { key, json: { name: "k", projects: ["one", one] } })
      assert.strictEqual(made.status, 201)
      const { key: secret, ...record } = made.json as Record<string, unknown>
      assert.match(String(secret), /^prj_[0-9A-Za-z]{40}$/)
      const { createdAt, id, ...rest } = record
      assert.match(String(createdAt), /Z$/)
      assert.match(String(id), /^pky_[0-9A-Za-z]{22}$/)
      assert.deepStrictEqual(rest, {
        name: "k",
        prefix: String(secret).slice(0, 12),
        projects: [one],
        expiresAt: null,
        rateLimitPerMinute: null
      })
      assert.deepStrictEqual((yield* ask("GET", keys, { key })).json, { keys: [record] })
      const changed = yield* ask("PATCH", `${keys}/${String(id)}`, { key, json: { projects: ["two"] } })
      assert.deepInclude(changed.json, { name: "k", projects: [two] })
      assert.deepStrictEqual(
        (yield* sent(String(secret))).messages.map(({ project: { slug } }) => slug),
        ["two"]
      )
      assert.deepStrictEqual((yield* ask("DELETE", `${keys}/${String(id)}`, { key })).json, { deleted: true })
      assert.deepStrictEqual(faultOf(yield* send(String(secret))), [401, invalidKey])
      assert.deepStrictEqual((yield* ask("GET", keys, { key })).json, { keys: [] })
    })
  )

  it.effect("cover the named projects, or all of the owner's, later ones too", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project, projectKey } = yield* makeStage
      const id = yield* project({ slug: "b", name: "B", description: "d" })
      const secret = yield* projectKey({ expiresAt: "2099-01-01T00:00:00Z" })
      yield* project({ slug: "a" })
      const { json } = yield* ask("GET", `${api}/projects`, { key: secret })
      const { key: shown, projects } = json as { key: object; projects: ReadonlyArray<{ slug: string }> }
      assert.deepStrictEqual(
        projects.map(({ slug }) => slug),
        ["a", "b"]
      )
      assert.deepStrictEqual(projects[1], { id, slug: "b", name: "B", description: "d" } as object)
      assert.deepStrictEqual(shown, {
        name: "sender",
        prefix: secret.slice(0, 12),
        expiresAt: "2099-01-01T00:00:00.000Z"
      })
      const make = (fields: object) =>
        Effect.map(ask("POST", keys, { key, json: { name: "k", projects: "all", ...fields } }), faultOf)
      assert.deepStrictEqual(yield* make({ projects: ["a", "none"] }), [404, "projects[1]: not found"])
      for (const wrong of [[], "a", Array.from({ length: 101 }, () => "a")])
        assert.strictEqual((yield* make({ projects: wrong }))[0], 400)
      for (const wrong of ["2001-01-01T00:00:00Z", "tomorrow"])
        assert.strictEqual((yield* make({ expiresAt: wrong }))[0], 400)
      for (const wrong of [0, 6_001, 1.5])
        assert.strictEqual((yield* make({ rateLimitPerMinute: wrong }))[0], 400)
    })
  )

  it.effect("end by themselves, and where another process revokes them", () =>
    Effect.gen(function* () {
      const { project, projectKey, userId } = yield* makeStage
      yield* project()
      const ending = yield* projectKey({ expiresAt: new Date(Date.now() + 300).toISOString() })
      const revoked = yield* projectKey()
      yield* sent(revoked)
      const sql = yield* SqlClient
      yield* sql`UPDATE project_keys SET revoked_at = now() WHERE user_id = ${userId} AND expires_at IS NULL`
      for (const key of [ending, revoked]) {
        const refused = yield* send(key).pipe(
          Effect.repeat({ until: ({ status }) => status === 401, schedule: Schedule.spaced(50) })
        )
        assert.deepStrictEqual(faultOf(refused), [401, invalidKey])
      }
    })
  )

  it.effect("that another process has made a moment ago are known", () =>
    Effect.gen(function* () {
      const { project, userId } = yield* makeStage
      yield* project()
      const sql = yield* SqlClient
      const key = newSecret("prj_")
      const row = { id: newId("pky"), user_id: userId, name: "k", prefix: "prj_", hash: hashOf(key) }
      yield* sql`INSERT INTO project_keys ${sql.insert(row)}`
      assert.strictEqual((yield* sent(key)).messages.length, 1)
    })
  )

  it.effect("work on their own paths alone, where other keys are told so", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { key, project, projectKey, userId } = yield* makeStage
      yield* project()
      const secret = yield* projectKey()
      for (const [method, path] of [
        ["GET", "/health"],
        ["GET", "/keys"],
        ["POST", "/projects"],
        ["GET", "/project-keys"],
        ["GET", "/deliveries"],
        ["POST", "/chat/completions"]
      ] as const) {
        const answer = yield* ask(method, `${api}${path}`, {
          key: secret,
          ...(method === "POST" && { json: {} })
        })
        assert.strictEqual(answer.status, 401, path)
        assert.include(Buffer.from(answer.bytes).toString(), invalidKey)
      }
      const { key: router } = yield* makeKey({ kind: "router", user_id: userId })
      const { key: reader } = yield* makeKey({ scopes: ["read"], user_id: userId })
      for (const other of [key, router, reader])
        assert.deepStrictEqual(faultOf(yield* send(other)), [401, otherKind])
      for (const path of ["/projects", "/messages"])
        assert.deepStrictEqual(faultOf(yield* ask("GET", `${api}${path}`, { key: router })), [401, otherKind])
      for (const none of ["", "x", `prj_${"0".repeat(40)}`])
        assert.deepStrictEqual(faultOf(yield* send(none)), [401, invalidKey])
    })
  )

  it.effect("send so often in a fixed minute, and ask for the rest by the general rate", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, project, projectKey } = yield* makeStage
      yield* project()
      const secret = yield* projectKey({ rateLimitPerMinute: 2 })
      const first = yield* send(secret)
      assert.deepStrictEqual(
        ["limit", "remaining"].map((name) => first.headers.get(`ratelimit-${name}`)),
        ["2", "1"]
      )
      // A send that is refused counts, too: it is taken before the body is read.
      const wrong = yield* ask("POST", `${api}/messages`, { key: secret, body: "{" })
      assert.strictEqual(wrong.status, 415)
      const refused = yield* send(secret)
      assert.strictEqual(refused.status, 429)
      assert.match(String(faultOf(refused)[1]), /^Sends are limited to 2 in 60 s; try again in \d+ s$/)
      assert.isAtLeast(Number(refused.headers.get("retry-after")), 1)
      assert.strictEqual((yield* ask("GET", `${api}/projects`, { key: secret })).status, 200)
      const usual = yield* send(yield* projectKey())
      assert.strictEqual(usual.headers.get("ratelimit-limit"), "120")
      const { json } = yield* ask("GET", `${api}/stats`, { key })
      // Its owner's figures count what it asked.
      assert.isAtLeast((json as { apiStats: { requestsToday: number } }).apiStats.requestsToday, 5)
      assert.isString(textOf(yield* ask("GET", `${api}/health`, { key }), "status"))
    })
  )
})
