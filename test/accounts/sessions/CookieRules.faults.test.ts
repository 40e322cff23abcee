import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { makeSessionCookie } from "#src/accounts/sessions/SessionCookie.ts"
import { AppConfig } from "#src/Config.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { askBy, cookieOf, isCleared, session, signIn, tokenOf } from "./SignedIn.ts"

type Headers = Readonly<Record<string, string>>

const requestOf = (method: string, headers: Headers, isProxied = false) => ({
  method,
  isProxied,
  header: (name: string) => headers[name] ?? ""
})

const cookieWith = (baseUrl: string | undefined) =>
  Effect.provide(makeSessionCookie, AppConfig.layerOf({ baseUrl }))

const unsafe = ["POST", "PUT", "PATCH", "DELETE"]
const host = { host: "box.example:8080" }

describe("a request that changes something", () => {
  const rows: ReadonlyArray<readonly [isForeign: boolean, headers: Headers, baseUrl?: string]> = [
    [false, {}],
    [false, host],
    [false, { ...host, "sec-fetch-site": "same-origin" }],
    [true, { ...host, "sec-fetch-site": "same-site" }],
    [true, { ...host, "sec-fetch-site": "cross-site" }],
    [true, { ...host, "sec-fetch-site": "none" }],
    [true, { ...host, "sec-fetch-site": "Same-Origin " }],
    // The newer header decides, whatever the older one says.
    [false, { ...host, "sec-fetch-site": "same-origin", origin: "https://evil.example" }],
    [true, { ...host, "sec-fetch-site": "cross-site", origin: "http://box.example:8080" }],
    [false, { ...host, origin: "http://box.example:8080" }],
    [true, { ...host, origin: "https://box.example:8080" }],
    [true, { ...host, origin: "http://box.example" }],
    [true, { ...host, origin: "http://box.example:8080.evil.example" }],
    [true, { ...host, origin: "http://evil.example" }],
    [true, { ...host, origin: "null" }],
    [true, { origin: "http://box.example:8080" }],
    [true, { host: "", origin: "http://" }],
    [false, { ...host, origin: "https://public.example" }, "https://public.example/"],
    [false, { ...host, origin: "http://box.example:8080" }, "https://public.example"],
    [true, { ...host, origin: "http://public.example" }, "https://public.example"]
  ]
  for (const [isForeign, headers, baseUrl] of rows)
    it.effect(
      `is ${isForeign ? "a foreign" : "no foreign"} page's by ${JSON.stringify({ ...headers, baseUrl })}`,
      () =>
        Effect.gen(function* () {
          const cookie = yield* cookieWith(baseUrl)
          for (const method of unsafe)
            assert.strictEqual(cookie.isForeign(requestOf(method, headers)), isForeign, method)
          for (const method of ["GET", "HEAD", "OPTIONS"])
            assert.isFalse(cookie.isForeign(requestOf(method, headers)), method)
        })
    )

  it.effect("came by https where a trusted proxy says so, and nobody else", () =>
    Effect.gen(function* () {
      const cookie = yield* cookieWith(undefined)
      const headers = { ...host, "x-forwarded-proto": "http, https", origin: "https://box.example:8080" }
      assert.isFalse(cookie.isForeign(requestOf("POST", headers, true)))
      assert.isTrue(cookie.isForeign(requestOf("POST", headers, false)))
    })
  )
})

describe("the cookie", () => {
  const both = { ...host, cookie: "signalbox=plain; __Host-signalbox=secure" }

  it.effect("is the prefixed one by https alone, as the public address says", () =>
    Effect.gen(function* () {
      const [plain, secure] = [yield* cookieWith(undefined), yield* cookieWith("https://public.example")]
      assert.strictEqual(plain.valueIn(requestOf("GET", both)), "plain")
      assert.strictEqual(secure.valueIn(requestOf("GET", both)), "secure")
      const forwarded = { ...both, "x-forwarded-proto": "https" }
      assert.strictEqual(plain.valueIn(requestOf("GET", forwarded, true)), "secure")
      assert.strictEqual(plain.valueIn(requestOf("GET", forwarded, false)), "plain")
      // Another page of the host may set the plain one: it opens nothing here.
      assert.isUndefined(secure.valueIn(requestOf("GET", { ...host, cookie: "signalbox=plain" })))
    })
  )
})

const strict = { baseUrl: "https://box.example", trustProxy: 1, limits: { signInsPerMinute: 1 } }

layer(TestServer.own(strict), { excludeTestServices: true })("a server with an https address", (it) => {
  it.effect("lets an address sign in so often a minute, whether the attempts are good or bad", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const bad = { key: "", json: { ticket: "slt_x" } }
      for (const [address, first, status] of [
        ["192.0.2.1", { key }, 201],
        ["192.0.2.2", { key: "sk_x" }, 401],
        ["192.0.2.3", bad, 401]
      ] as const) {
        const headers = { "x-forwarded-for": address }
        assert.strictEqual((yield* ask("POST", session, { ...first, headers })).status, status)
        for (const again of [{ key }, { key: "sk_x" }, bad])
          assert.strictEqual((yield* ask("POST", session, { ...again, headers })).status, 429)
        assert.strictEqual((yield* ask("GET", "/api/v1/health", { key, headers })).status, 200)
      }
    })
  )

  it.effect("sets a cookie that is Secure and of this host alone, and clears it so", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      const opened = yield* ask("POST", session, { key })
      assert.match(
        cookieOf(opened)?.all ?? "",
        /^__Host-signalbox=ssc_\w{40}; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/
      )
      const cookie = cookieOf(opened)?.pair ?? ""
      assert.strictEqual((yield* askBy(cookie, "GET", session)).status, 200)
      const ended = yield* askBy(cookie, "DELETE", session)
      assert.isTrue(isCleared(ended))
      assert.match(cookieOf(ended)?.all ?? "", /HttpOnly; Secure; SameSite=Lax$/)
      const link = yield* ask("POST", `/api/v1/admin/users/${id}/login-link`)
      assert.match((link.json as { readonly url: string }).url, /^https:\/\/box\.example\/login#slt_/)
    })
  )
})

layer(TestServer.shared, { excludeTestServices: true })("a foreign page", (it) => {
  const foreign = { "sec-fetch-site": "cross-site" }
  const refused = [403, { error: "Pages of other origins may not do this" }]

  it.effect("signs nobody in, by a key or by a ticket, and uses no ticket up", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      const made = yield* ask("POST", `/api/v1/admin/users/${id}/login-link`)
      const ticket = (made.json as { readonly url: string }).url.split("#")[1]
      for (const asked of [
        { key, headers: foreign },
        { key, headers: { origin: "null" } },
        { key: "", json: { ticket }, headers: foreign }
      ]) {
        const answer = yield* ask("POST", session, asked)
        assert.deepStrictEqual([answer.status, answer.json, cookieOf(answer)], [...refused, undefined])
      }
      // A form, and a script that asks nobody for leave, can send these.
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x"
      ]) {
        const headers = { "content-type": type }
        const body = JSON.stringify({ ticket })
        assert.strictEqual((yield* ask("POST", session, { key: "", body, headers })).status, 415)
      }
      assert.strictEqual((yield* ask("POST", session, { key: "", json: { ticket } })).status, 201)
    })
  )

  it.effect("ends no session and gets no token, and the session goes on", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const cookie = yield* signIn((yield* makeUser()).key)
      for (const [method, path] of [
        ["DELETE", session],
        ["DELETE", `${session}?everywhere=true`],
        ["POST", `${session}/token`]
      ] as const) {
        const answer = yield* askBy(cookie, method, path, { headers: foreign })
        assert.deepStrictEqual([answer.status, answer.json, cookieOf(answer)], [...refused, undefined])
      }
      const own = { "sec-fetch-site": "same-origin" }
      assert.strictEqual((yield* askBy(cookie, "GET", session, { headers: foreign })).status, 200)
      assert.strictEqual((yield* askBy(cookie, "POST", `${session}/token`, { headers: own })).status, 200)
    })
  )
})

layer(TestServer.shared, { excludeTestServices: true })("a cookie", (it) => {
  it.effect("that was never given is 401 and is cleared; without one nothing is", () =>
    Effect.gen(function* () {
      for (const value of ["x", `ssc_${"0".repeat(40)}`, `sk_${"0".repeat(40)}`, "%", "ssc_"]) {
        const answer = yield* askBy(`signalbox=${value}`, "GET", session)
        assert.deepStrictEqual([answer.status, isCleared(answer)], [401, true], value)
      }
      for (const none of ["", "other=x", "signalbox=", "__Host-signalbox=x"]) {
        const answer = yield* askBy(none, "GET", session)
        assert.deepStrictEqual([answer.status, cookieOf(answer)], [401, undefined], none)
      }
    })
  )

  it.effect("comes after a credential in Authorization, good or bad", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const [one, other] = [yield* makeUser(), yield* makeUser()]
      const cookie = yield* signIn(one.key)
      const token = yield* tokenOf(yield* signIn(other.key))
      const asked = yield* ask("GET", session, { key: token, headers: { cookie } })
      assert.strictEqual((asked.json as { readonly user: { readonly id: string } }).user.id, other.id)
      for (const headers of [{ authorization: "Bearer x" }, { authorization: "Basic x" }]) {
        const answer = yield* askBy(cookie, "GET", session, { headers })
        assert.deepStrictEqual([answer.status, cookieOf(answer)], [401, undefined])
      }
      assert.strictEqual((yield* askBy(cookie, "GET", session)).status, 200)
    })
  )
})
