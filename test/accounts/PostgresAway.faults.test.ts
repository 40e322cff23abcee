import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestServer, type Answer, textOf } from "#test/harness/TestServer.ts"
import { askBy, cookieOf, session, signIn, tokenOf } from "./sessions/SignedIn.ts"

const live = { excludeTestServices: true } as const

const postgres = postgresWire()

const flat503 = { error: "The database is away; nothing was changed, try again later" }
const nested503 = {
  error: { message: flat503.error, type: "server_error", code: "overloaded", param: null }
}

const formOf = (text: string): FormData => {
  const form = new FormData()
  form.set("file", new Blob([text]), "a.txt")
  return form
}

/** The requests to the rooms of accounts and agents that need Postgres, with an administrator's key. */
const needsPostgres = (userId: string, keyId: string) =>
  [
    ["GET", "/api/v1/stats", {}, flat503],
    ["GET", "/api/v1/users", {}, flat503],
    ["POST", "/api/v1/admin/users", { json: { email: "x@example.org", name: "x" } }, flat503],
    ["PATCH", `/api/v1/admin/users/${userId}`, { json: { name: "y" } }, flat503],
    ["DELETE", `/api/v1/admin/users/${userId}`, {}, flat503],
    ["POST", `/api/v1/admin/users/${userId}/login-link`, {}, flat503],
    ["POST", "/api/session", {}, flat503],
    ["POST", "/api/session", { key: "", json: { ticket: "slt_x" } }, flat503],
    ["GET", "/api/v1/files/fil_x", {}, flat503],
    ["DELETE", "/api/v1/files/fil_x", {}, flat503],
    ["POST", "/api/v1/files", { body: formOf("x") }, flat503],
    ["POST", "/api/v1/sites", { json: { name: "s", domain: "a.example" } }, flat503],
    ["GET", "/api/v1/agent", {}, flat503],
    ["GET", "/api/v1/agent/sessions", {}, flat503],
    ["GET", "/api/v1/agent/sessions/ses_x", {}, flat503],
    ["DELETE", "/api/v1/agent/sessions/ses_x", {}, flat503],
    ["GET", "/api/v1/keys", {}, nested503],
    ["POST", "/api/v1/keys", { json: { name: "x", kind: "account" } }, nested503],
    ["PATCH", `/api/v1/keys/${keyId}`, { json: { name: "y" } }, nested503],
    ["DELETE", `/api/v1/keys/${keyId}`, {}, nested503]
  ] as const

const isUp = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(ask("GET", "/api/v1/keys"), ({ status }) => status === 200)
)

const postgresState = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(ask("GET", "/readyz", { key: "" }), ({ json, status }) => {
    const { components } = json as { components: Record<string, { status: string; detail?: string }> }
    return [status, components["postgres"]?.status, components["postgres"]?.detail ?? ""] as const
  })
)

layer(TestServer.own({}, postgres), live)("without Postgres", (it) => {
  it.effect("writes and what is not in memory are 503 with Retry-After; keys, users and sites go on", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const other = yield* makeKey({}, person.key)
      const site = yield* ask("POST", "/api/v1/sites", {
        key: person.key,
        json: { name: "s", domain: "b.example" }
      })
      const cookie = yield* signIn(person.key)
      const token = yield* tokenOf(cookie)
      yield* postgres.cut("refuse")

      for (const [method, path, asked, body] of needsPostgres(person.id, other.id)) {
        const answer: Answer = yield* ask(method, path, asked)
        assert.deepStrictEqual([answer.status, answer.json], [503, body], `${method} ${path}`)
        assert.match(answer.headers.get("retry-after") ?? "", /^[1-9]\d*$/, `${method} ${path}`)
      }
      // An unknown key may have been made elsewhere: it is not reported as wrong.
      const unheard = yield* ask("GET", "/api/v1/health", { key: `sk_${"A".repeat(40)}` })
      assert.deepStrictEqual([unheard.status, unheard.json], [503, flat503])
      const malformed = yield* ask("GET", "/api/v1/health", { key: "sk_x" })
      assert.strictEqual(malformed.status, 401)

      for (const path of ["/api/v1/health", "/api/v1/users", "/api/v1/sites"]) {
        assert.strictEqual((yield* ask("GET", path, { key: other.key })).status, 200, path)
      }
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: token })).status, 200)
      assert.strictEqual((yield* askBy(cookie, "GET", session)).status, 200)
      // The cookie may have been set elsewhere, and a sign-out that was not carried out clears nothing.
      const unknown = yield* askBy(`signalbox=ssc_${"A".repeat(40)}`, "GET", session)
      const signOut = yield* askBy(cookie, "DELETE", session)
      for (const answer of [unknown, signOut])
        assert.deepStrictEqual([answer.status, cookieOf(answer)], [503, undefined])
      const event = { name: "pageview", url: "https://b.example/", visitor: "v" }
      const collected = yield* ask("POST", "/api/v1/collect", { key: textOf(site, "secret"), json: event })
      assert.strictEqual(collected.status, 202)
      const ofSite = `/api/v1/sites/${(site.json as { site: { id: string } }).site.id}`
      for (const read of ["stats", "breakdown?dimension=page", "realtime", "export"]) {
        assert.strictEqual((yield* ask("GET", `${ofSite}/${read}`, { key: other.key })).status, 200, read)
      }
      for (const [method, path] of [
        ["GET", "drops"],
        ["POST", "import?import=a&offset=0"]
      ] as const) {
        const answer = yield* ask(method, `${ofSite}/${path}`, { key: other.key })
        assert.deepStrictEqual([answer.status, answer.json], [503, flat503], path)
      }

      yield* eventually(
        "/readyz says that revocation is suspended",
        Effect.map(
          postgresState,
          ([status, state, detail]) =>
            status === 200 && state === "degraded" && detail.includes("revocation within 1 s is suspended")
        )
      )
      postgres.mend()
      yield* eventually("Postgres is back", isUp)
      // None of the refused writes was carried out after all.
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: other.key })).status, 200)
      yield* eventually(
        "/readyz is well again",
        Effect.map(postgresState, ([, state]) => state === "up")
      )
    })
  )

  it.effect("requests are counted still, and the counts arrive when it is back", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const person = yield* makeUser()
      yield* postgres.cut("refuse")
      for (let asked = 0; asked < 4; asked++) yield* ask("GET", "/api/v1/health", { key: person.key })
      postgres.mend()
      yield* eventually("Postgres is back", isUp)
      const { json } = yield* ask("GET", "/api/v1/stats", { key: person.key })
      assert.deepInclude((json as { apiStats: object }).apiStats, { requestsThisMonth: 4, errorCount: 0 })
    })
  )

  it.effect("that hangs a write is 503 all the same, and not waited for without end", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      // Each of the writes below finds an open connection, and no time limit of a new one helps it.
      yield* Effect.forEach(Array(10).keys(), () => ask("GET", "/api/v1/keys"), { concurrency: "unbounded" })
      yield* postgres.cut("stall")
      const [json, upload, list] = yield* Effect.all(
        [
          ask("POST", "/api/v1/admin/users", { json: { email: "stall@example.org", name: "x" } }),
          ask("POST", "/api/v1/files", { body: formOf("y") }),
          ask("GET", "/api/v1/keys")
        ],
        { concurrency: "unbounded" }
      )
      postgres.mend()
      assert.deepStrictEqual([json.status, json.json], [503, flat503])
      assert.deepStrictEqual([upload.status, upload.json], [503, flat503])
      assert.deepStrictEqual([list.status, list.json], [503, nested503])
      yield* eventually("Postgres is back", isUp)
    })
  )
})
