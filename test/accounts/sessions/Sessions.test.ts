import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import { limits } from "#src/Limits.ts"
import { AgentSocket } from "#test/agents/rest/AgentSocket.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { askBy, cookieOf, isCleared, session, signIn, ticketOf, tokenOf } from "./SignedIn.ts"

const live = { excludeTestServices: true } as const
const asJson = { "content-type": "application/json" }
const badKey = { error: "Invalid or missing API key" }
const badTicket = { error: "The login link was used, has expired or never was one" }

layer(TestServer.shared, live)("a session", (it) => {
  it.effect("opens by an account key, tells its user, and ends", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const { key } = yield* makeKey({ scopes: ["read", "write:photos"] }, person.key)
      const opened = yield* ask("POST", session, { key })
      assert.strictEqual(opened.status, 201)
      const { expiresAt, scopes, user } = opened.json as {
        readonly user: Readonly<Record<string, string>>
        readonly scopes: ReadonlyArray<string>
        readonly expiresAt: string
      }
      assert.deepStrictEqual(Object.keys(user), ["id", "email", "name", "role"])
      assert.deepInclude(user, { id: person.id, role: "user" })
      assert.deepStrictEqual(scopes, ["read", "write:photos"])
      assert.approximately(Date.parse(expiresAt), Date.now() + limits.sessionMillis, 60_000)
      assert.strictEqual(opened.headers.get("cache-control"), "no-store")
      assert.match(
        cookieOf(opened)?.all ?? "",
        /^signalbox=ssc_[0-9A-Za-z]{40}; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/
      )
      const cookie = cookieOf(opened)?.pair ?? ""
      assert.deepStrictEqual((yield* askBy(cookie, "GET", session)).json, opened.json)
      const ended = yield* askBy(cookie, "DELETE", session)
      assert.deepStrictEqual([ended.status, ended.json, isCleared(ended)], [200, { deleted: true }, true])
      const after = yield* askBy(cookie, "GET", session)
      assert.deepStrictEqual([after.status, after.json, isCleared(after)], [401, badKey, true])
    })
  )

  it.effect("keeps nothing in Postgres that would open it", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { id, key } = yield* makeUser()
      const secret = (yield* signIn(key)).split("=")[1] ?? ""
      const ticket = yield* ticketOf(id)
      const rows = yield* sql<{ text: string }>`SELECT web_sessions::text AS text FROM web_sessions
        WHERE user_id = ${id} UNION ALL SELECT login_links::text FROM login_links WHERE user_id = ${id}`
      assert.lengthOf(rows, 2)
      for (const { text } of rows) {
        assert.notInclude(text, secret.slice(4))
        assert.notInclude(text, ticket.slice(4))
      }
    })
  )

  it.effect("is one a browser: signing in again ends the former one", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const former = yield* signIn(key)
      const again = yield* ask("POST", session, { key, headers: { cookie: former } })
      assert.strictEqual(again.status, 201)
      assert.strictEqual((yield* askBy(former, "GET", session)).status, 401)
      assert.strictEqual((yield* askBy(cookieOf(again)?.pair ?? "", "GET", session)).status, 200)
    })
  )

  it.effect("does not open by a router key, a bad one, a session, or nothing", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { key: router } = yield* makeKey({ kind: "router" }, key)
      const token = yield* tokenOf(yield* signIn(key))
      for (const [shown, status] of [
        [router, 403],
        [token, 403],
        [`sk_${"0".repeat(40)}`, 401],
        ["", 401]
      ] as const) {
        const answer = yield* ask("POST", session, { key: shown })
        assert.deepStrictEqual([answer.status, cookieOf(answer)], [status, undefined], shown.slice(0, 6))
      }
      assert.strictEqual((yield* ask("POST", session, { key, body: "{", headers: asJson })).status, 400)
    })
  )

  it.effect("ends everywhere when its user says so, and no other user's does", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const [one, other] = [yield* makeUser(), yield* makeUser()]
      const cookies = [yield* signIn(one.key), yield* signIn(one.key)]
      const stranger = yield* signIn(other.key)
      const token = yield* tokenOf(cookies[1] ?? "")
      const all = yield* askBy(cookies[0] ?? "", "DELETE", `${session}?everywhere=true`)
      assert.deepStrictEqual([all.status, isCleared(all)], [200, true])
      for (const cookie of cookies) assert.strictEqual((yield* askBy(cookie, "GET", session)).status, 401)
      const { ask } = yield* TestServer
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: token })).status, 401)
      assert.strictEqual((yield* askBy(stranger, "GET", session)).status, 200)
      const invalid = yield* askBy(stranger, "DELETE", `${session}?everywhere=yes`)
      assert.strictEqual(invalid.status, 400)
    })
  )

  it.effect("ends with its key, and with its user", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const key = yield* makeKey({}, person.key)
      const ofKey = yield* signIn(key.key)
      const ofUser = yield* signIn(person.key)
      const token = yield* tokenOf(ofKey)
      const ticket = yield* ticketOf(person.id)
      yield* ask("DELETE", `/api/v1/keys/${key.id}`, { key: person.key })
      const replayed = yield* askBy(ofKey, "GET", session)
      assert.deepStrictEqual([replayed.status, isCleared(replayed)], [401, true])
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: token })).status, 401)
      assert.strictEqual((yield* askBy(ofUser, "GET", session)).status, 200)
      yield* ask("DELETE", `/api/v1/admin/users/${person.id}`)
      assert.strictEqual((yield* askBy(ofUser, "GET", session)).status, 401)
      const late = yield* ask("POST", session, { key: "", json: { ticket } })
      assert.deepStrictEqual([late.status, late.json], [401, badTicket])
    })
  )

  it.effect("has the rights of its key at each request, not those that it had at first", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key: own } = yield* makeUser()
      const { id, key } = yield* makeKey({}, own)
      const cookie = yield* signIn(key)
      const token = yield* tokenOf(cookie)
      assert.strictEqual((yield* ask("GET", "/api/v1/keys", { key: token })).status, 200)
      yield* ask("PATCH", `/api/v1/keys/${id}`, { key: own, json: { scopes: ["read"] } })
      assert.strictEqual((yield* ask("GET", "/api/v1/keys", { key: token })).status, 403)
      const told = (yield* askBy(cookie, "GET", session)).json as { readonly scopes: unknown }
      assert.deepStrictEqual(told.scopes, ["read"])
    })
  )
})

layer(TestServer.shared, live)("a login link", (it) => {
  it.effect("signs its user in once, with every right, and no GET uses it up", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id } = yield* makeUser()
      const made = yield* ask("POST", `/api/v1/admin/users/${id}/login-link`)
      const { expiresAt, url } = made.json as { readonly url: string; readonly expiresAt: string }
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/login#slt_[0-9A-Za-z]{40}$/)
      assert.approximately(Date.parse(expiresAt), Date.now() + limits.loginLinkMillis, 60_000)
      const ticket = url.split("#")[1] ?? ""
      // A scanner of links sees the address without the fragment, and one that is told all of it asks by GET.
      yield* ask("GET", "/login", { key: "" })
      yield* ask("GET", `${session}?ticket=${ticket}`, { key: "" })
      const tries = yield* Effect.all(
        Array.from({ length: 5 }, () => ask("POST", session, { key: "", json: { ticket } })),
        { concurrency: "unbounded" }
      )
      const [good, ...bad] = tries.toSorted((one, other) => one.status - other.status)
      assert.strictEqual(good?.status, 201)
      for (const answer of bad) assert.deepStrictEqual([answer.status, answer.json], [401, badTicket])
      assert.deepInclude(good?.json, { scopes: ["full"] })
      const cookie = good === undefined ? undefined : cookieOf(good)?.pair
      const token = yield* tokenOf(cookie ?? "")
      const health = yield* ask("GET", "/api/v1/health", { key: token })
      assert.deepInclude(health.json, { userId: id, apiKey: "login link" })
    })
  )

  it.effect("that expired, or never was one, is refused with the same words", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { id } = yield* makeUser()
      const ticket = yield* ticketOf(id)
      yield* sql`UPDATE login_links SET ends_at = now() - interval '1 s' WHERE hash = ${hashOf(ticket)}`
      for (const shown of [ticket, `slt_${"0".repeat(40)}`, "", "x"]) {
        const answer = yield* ask("POST", session, { key: "", json: { ticket: shown } })
        assert.deepStrictEqual([answer.status, answer.json], [401, badTicket], shown)
      }
      for (const shown of ["x".repeat(101), 7, null])
        assert.strictEqual((yield* ask("POST", session, { key: "", json: { ticket: shown } })).status, 400)
    })
  )

  it.effect("is an administrator's to make, for a user who is there; the eleventh replaces the first", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      const path = `/api/v1/admin/users/${id}/login-link`
      assert.strictEqual((yield* ask("POST", path, { key })).status, 403)
      const nobody = yield* ask("POST", `/api/v1/admin/users/usr_${"0".repeat(22)}/login-link`)
      assert.strictEqual(nobody.status, 404)
      const tickets = yield* Effect.all(
        Array.from({ length: limits.loginLinksPerUser + 1 }, () => ticketOf(id))
      )
      const redeem = (ticket = "") => ask("POST", session, { key: "", json: { ticket } })
      assert.strictEqual((yield* redeem(tickets[0])).status, 401)
      assert.strictEqual((yield* redeem(tickets[1])).status, 201)
    })
  )
})

layer(TestServer.shared, live)("a token of a session", (it) => {
  it.effect("opens other rooms as the session does, and neither itself nor another session", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      const cookie = yield* signIn(key)
      const made = yield* askBy(cookie, "POST", `${session}/token`)
      const { expiresAt, token } = made.json as { readonly token: string; readonly expiresAt: string }
      assert.approximately(Date.parse(expiresAt), Date.now() + limits.sessionTokenMillis, 60_000)
      assert.strictEqual(made.headers.get("cache-control"), "no-store")
      assert.isUndefined(cookieOf(made))
      for (const path of ["/health", "/sites", "/models", "/credits", "/key", "/agent"])
        assert.strictEqual((yield* ask("GET", `/api/v1${path}`, { key: token })).status, 200, path)
      const { data } = (yield* ask("GET", "/api/v1/key", { key: token })).json as {
        readonly data: Readonly<Record<string, unknown>>
      }
      assert.deepInclude(data, { kind: "session", label: "test" })
      assert.deepInclude((yield* ask("GET", session, { key: token })).json, { scopes: ["full"] })
      const again = yield* ask("POST", `${session}/token`, { key: token, headers: { cookie } })
      assert.strictEqual(again.status, 403)
      assert.deepInclude((yield* ask("GET", "/api/v1/health", { key: token })).json, { userId: id })
      yield* askBy(cookie, "DELETE", session)
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: token })).status, 401)
    })
  )

  it.effect("opens an agent's session without a key, which ends with the browser's", () =>
    Effect.gen(function* () {
      const { ask, makeUser, url } = yield* TestServer
      const { id } = yield* makeUser()
      const opened = yield* ask("POST", session, { key: "", json: { ticket: yield* ticketOf(id) } })
      const cookie = cookieOf(opened)?.pair ?? ""
      const token = yield* tokenOf(cookie)
      const socket = yield* Effect.promise(() => AgentSocket.open(url, token))
      assert.match(socket.sessionId, /^ses_/)
      yield* askBy(cookie, "DELETE", session)
      assert.strictEqual(yield* Effect.promise(() => socket.closed()), closeCodes.revoked)
    })
  )

  it.effect("that was forged, changed or is the cookie itself opens nothing", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const cookie = yield* signIn((yield* makeUser()).key)
      const other = yield* tokenOf(yield* signIn((yield* makeUser()).key))
      const token = yield* tokenOf(cookie)
      const [id = "", seconds = "", signature = ""] = token.split(".")
      for (const forged of [
        `${id}.${Number(seconds) + 1}.${signature}`,
        `${other.split(".")[0]}.${seconds}.${signature}`,
        `${id}.${seconds}.${"A".repeat(43)}`,
        `${id}.${seconds}.${signature.slice(0, -1)}`,
        `${id}.${seconds}.`,
        "sst_",
        cookie.split("=")[1] ?? ""
      ])
        assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: forged })).status, 401, forged)
      assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: token })).status, 200)
    })
  )
})
