import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import { askBy, signIn, ticketOf, tokenOf } from "#test/accounts/sessions/SignedIn.ts"
import { type Limits, limits } from "#src/Limits.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const
const auth = "/api/cli/auth"
const badKey = { error: "Invalid or missing API key" }
const over = { error: "token: no login waits under it; begin again with signalbox login" }

interface Begun {
  readonly token: string
  readonly url: string
  readonly expiresIn: number
  readonly digits: string
}

const begin = (json?: object) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const answer = yield* ask("POST", `${auth}/init`, { key: "", ...(json !== undefined && { json }) })
    assert.strictEqual(answer.status, 200, JSON.stringify(answer.json))
    assert.strictEqual(answer.headers.get("cache-control"), "no-store")
    return answer.json as Begun
  })

const poll = (token: string, method = "GET") =>
  Effect.flatMap(TestServer, ({ ask }) => ask(method, `${auth}/poll?token=${token}`, { key: "" }))

const complete = (cookie: string, json: object) => askBy(cookie, "POST", `${auth}/complete`, { json })

/** The key of a machine that is let in. */
const letIn = (cookie: string, more: object = {}, login: object = {}) =>
  Effect.gen(function* () {
    const { token } = yield* begin(login)
    const done = yield* complete(cookie, { token, ...more })
    assert.deepStrictEqual([done.status, done.json], [200, { success: true }])
    return textOf(yield* poll(token), "apiKey")
  })

layer(TestServer.shared, live)("login of a command line", (it) => {
  it.effect("gives a key once, at the first poll after a session let it in", () =>
    Effect.gen(function* () {
      const { ask, makeUser, url } = yield* TestServer
      const { id, key } = yield* makeUser()
      const begun = yield* begin()
      assert.match(begun.token, /^[0-9A-Za-z]{22}$/)
      assert.strictEqual(begun.expiresIn, 600)
      assert.strictEqual(begun.url, `${url}/cli#${begun.token}`)
      assert.match(begun.digits, /^\d{4}$/)
      const { token } = begun
      assert.deepStrictEqual((yield* poll(token)).json, { status: "pending" })
      const cookie = yield* signIn(key)
      const done = yield* complete(cookie, { token })
      assert.deepStrictEqual([done.status, done.json], [200, { success: true }])
      const polled = yield* poll(token)
      assert.strictEqual(polled.status, 200)
      assert.strictEqual(polled.headers.get("cache-control"), "no-store")
      assert.deepStrictEqual(Object.keys(polled.json as object), ["status", "apiKey"])
      assert.strictEqual(textOf(polled, "status"), "complete")
      const apiKey = textOf(polled, "apiKey")
      assert.match(apiKey, /^sk_[0-9A-Za-z]{40}$/)
      assert.deepStrictEqual((yield* poll(token)).json, { status: "expired" })
      const { users } = (yield* ask("GET", "/api/v1/users", { key: apiKey })).json as {
        readonly users: ReadonlyArray<{ readonly id: string }>
      }
      assert.deepStrictEqual(
        users.map((user) => user.id),
        [id]
      )
    })
  )

  it.effect("answers expired to an unknown token, and to one that is over", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const cookie = yield* signIn((yield* makeUser()).key)
      const { token } = yield* begin()
      yield* sql`UPDATE cli_logins SET ends_at = now() - interval '1 second' WHERE hash = ${hashOf(token)}`
      for (const unknown of [token, "0123456789012345678901", "x", "%00"]) {
        const polled = yield* poll(unknown)
        assert.deepStrictEqual([polled.status, polled.json], [200, { status: "expired" }], unknown)
      }
      const late = yield* complete(cookie, { token })
      assert.deepStrictEqual([late.status, late.json], [404, over])
    })
  )

  it.effect(
    "is let in by a session alone: keys of every kind, tokens of nothing and other origins are refused",
    () =>
      Effect.gen(function* () {
        const { ask, makeKey, makeUser, url } = yield* TestServer
        const { id, key } = yield* makeUser()
        const { key: router } = yield* makeKey({ kind: "router" }, key)
        const { token } = yield* begin()
        for (const path of ["read", "complete"])
          for (const refusedKey of [key, router, "", "sk_nothing"]) {
            const refused = yield* ask("POST", `${auth}/${path}`, { key: refusedKey, json: { token } })
            assert.deepStrictEqual([refused.status, refused.json], [401, badKey], `${path} ${refusedKey}`)
          }
        const cookie = yield* signIn(key)
        for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://elsewhere.test" }]) {
          const foreign = yield* askBy(cookie, "POST", `${auth}/complete`, { json: { token }, headers })
          assert.deepStrictEqual(foreign.status, 403)
        }
        assert.deepStrictEqual((yield* poll(token)).json, { status: "pending" })
        const own = yield* askBy(cookie, "POST", `${auth}/complete`, {
          json: { token },
          headers: { origin: url }
        })
        assert.strictEqual(own.status, 200)
        // A session's token, and the session of a login link, are sessions, too.
        const other = yield* begin()
        const sst = yield* tokenOf(cookie)
        const byToken = yield* ask("POST", `${auth}/complete`, { key: sst, json: { token: other.token } })
        assert.strictEqual(byToken.status, 200)
        const opened = yield* ask("POST", "/api/session", { key: "", json: { ticket: yield* ticketOf(id) } })
        const linked = opened.headers.getSetCookie()[0]?.split(";", 1)[0] ?? ""
        const byLink = yield* letIn(linked)
        assert.strictEqual((yield* ask("GET", "/api/v1/health", { key: byLink })).status, 200)
      })
  )

  it.effect("shows the person what asks, and the digits of the terminal", () =>
    Effect.gen(function* () {
      const { makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const scoped = yield* makeKey({ scopes: ["read", "write:photos"] }, key)
      const cookie = yield* signIn(scoped.key)
      const begun = yield* begin({ name: "ada's laptop", platform: "desktop" })
      const { token } = begun
      const shown = yield* askBy(cookie, "POST", `${auth}/read`, { json: { token } })
      const { expiresAt, ...rest } = shown.json as Record<string, unknown>
      assert.deepStrictEqual(rest, {
        name: "ada's laptop",
        platform: "desktop",
        digits: begun.digits,
        scopes: ["read", "write:photos"]
      })
      assert.approximately(Date.parse(String(expiresAt)), Date.now() + 600_000, 30_000)
      // The rule by which other programs make them: of SHA-256 of the token the first four bytes, as a decimal number.
      assert.strictEqual(
        begun.digits,
        String(parseInt(hashOf(token).toString("hex").slice(0, 8), 16) % 10_000).padStart(4, "0")
      )
      const plain = yield* askBy(cookie, "POST", `${auth}/read`, { json: { token: (yield* begin()).token } })
      assert.deepInclude(plain.json as object, { name: "Command line", platform: "cli" })
      assert.strictEqual((yield* complete(cookie, { token })).status, 200)
      for (const path of ["read", "complete"]) {
        const again = yield* askBy(cookie, "POST", `${auth}/${path}`, { json: { token } })
        assert.deepStrictEqual(
          [again.status, again.json],
          [409, { error: "token: this login was let in already" }]
        )
      }
    })
  )

  it.effect("gives the session's scopes, or some of them, and never more", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const full = yield* signIn(key)
      const scopesOf = (apiKey: string) =>
        Effect.map(
          ask("POST", "/api/session", { key: apiKey }),
          ({ json }) => (json as { scopes: unknown }).scopes
        )
      assert.deepStrictEqual(yield* scopesOf(yield* letIn(full)), ["full"])
      assert.deepStrictEqual(yield* scopesOf(yield* letIn(full, { scopes: ["read", "write:a"] })), [
        "read",
        "write:a"
      ])
      const { key: reader } = yield* makeKey({ scopes: ["read"] }, key)
      const cookie = yield* signIn(reader)
      assert.deepStrictEqual(yield* scopesOf(yield* letIn(cookie)), ["read"])
      assert.deepStrictEqual(yield* scopesOf(yield* letIn(cookie, { scopes: ["read:a"] })), ["read:a"])
      const { token } = yield* begin()
      for (const scope of ["full", "write", "write:a"]) {
        const refused = yield* complete(cookie, { token, scopes: ["read", scope] })
        assert.deepStrictEqual(
          [refused.status, refused.json],
          [403, { error: `scopes: this session does not have ${scope} itself` }]
        )
      }
      for (const scopes of [[], ["admin"], "full"])
        assert.strictEqual((yield* complete(cookie, { token, scopes })).status, 400)
      assert.deepStrictEqual((yield* poll(token)).json, { status: "pending" })
    })
  )

  it.effect("gives a key that ends with the one that opened the session, and has its rate", () =>
    Effect.gen(function* () {
      const { makeKey, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { key } = yield* makeUser()
      const fields = { expires_at: "2099-01-01T00:00:00Z", rate_limit_per_minute: 77 }
      const ending = yield* makeKey(fields, key)
      const apiKey = yield* letIn(yield* signIn(ending.key))
      const [row] =
        yield* sql`SELECT expires_at, rate_limit_per_minute FROM keys WHERE hash = ${hashOf(apiKey)}`
      assert.deepStrictEqual(row as object, {
        expires_at: new Date("2099-01-01T00:00:00Z"),
        rate_limit_per_minute: 77
      })
      // Revoked between the person's consent and the poll, it gives nothing.
      const revoked = yield* makeKey({}, key)
      const { token } = yield* begin()
      assert.strictEqual((yield* complete(yield* signIn(revoked.key), { token })).status, 200)
      const { ask } = yield* TestServer
      yield* ask("DELETE", `/api/v1/keys/${revoked.id}`, { key })
      assert.deepStrictEqual((yield* poll(token)).json, { status: "expired" })
    })
  )

  it.effect("makes one key and one device, however many poll at once; HEAD makes none", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const cookie = yield* signIn(key)
      const { token } = yield* begin({ name: "build", platform: "cli" })
      assert.strictEqual((yield* complete(cookie, { token })).status, 200)
      assert.strictEqual((yield* poll(token, "HEAD")).status, 200)
      const polled = yield* Effect.all(
        Array.from({ length: 8 }, () => poll(token)),
        { concurrency: "unbounded" }
      )
      const statuses = polled.map((answer) => textOf(answer, "status")).sort()
      assert.deepStrictEqual(statuses, ["complete", ...Array.from({ length: 7 }, () => "expired")])
      const listed = (yield* ask("GET", "/api/devices", { key })).json as {
        readonly devices: ReadonlyArray<Record<string, string>>
      }
      assert.deepStrictEqual(
        listed.devices.map(({ name, platform }) => [name, platform]),
        [["build", "cli"]]
      )
    })
  )

  it.effect("is taken back with its device: the key works no more", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const apiKey = yield* letIn(yield* signIn(key), {}, { name: "old laptop" })
      const { devices } = (yield* ask("GET", "/api/devices", { key: apiKey })).json as {
        readonly devices: ReadonlyArray<{ readonly id: string }>
      }
      const deleted = yield* ask("DELETE", `/api/devices/${devices[0]?.id ?? ""}`, { key })
      assert.deepStrictEqual([deleted.status, deleted.json], [200, { success: true }])
      const after = yield* ask("GET", "/api/devices", { key: apiKey })
      assert.deepStrictEqual([after.status, after.json], [401, badKey])
      assert.strictEqual((yield* ask("GET", "/api/devices", { key })).status, 200)
    })
  )

  it.effect("says 409 to a person who has no room for another device", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { id: userId, key } = yield* makeUser()
      const cookie = yield* signIn(key)
      const { token } = yield* begin()
      yield* sql`INSERT INTO devices (id, user_id, name, platform, sync_root, last_seen_at)
        SELECT 'dev_' || lpad(n::text, 6, '0') || left(md5(${userId}), 16), ${userId}, 'd', 'web', '~', now()
        FROM generate_series(1, 100) n`
      const refused = yield* complete(cookie, { token })
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [409, { error: "A user has at most 100 devices" }]
      )
    })
  )

  it.effect("keeps neither token nor key where they could be read, and logs none", () =>
    Effect.gen(function* () {
      const { logged, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const cookie = yield* signIn((yield* makeUser()).key)
      const { token } = yield* begin()
      assert.strictEqual((yield* complete(cookie, { token })).status, 200)
      const [row] = yield* sql<{ text: string }>`SELECT cli_logins::text AS text FROM cli_logins
        WHERE hash = ${hashOf(token)}`
      assert.notInclude(row?.text ?? token, token)
      const apiKey = textOf(yield* poll(token), "apiKey")
      for (const line of logged()) {
        assert.notInclude(line, token)
        assert.notInclude(line, apiKey)
      }
      assert.lengthOf(yield* sql`SELECT 1 FROM cli_logins WHERE hash = ${hashOf(token)}`, 0)
    })
  )

  it.effect("is refused by the name of the field that does not fit", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const [json, start] of [
        [{ name: "" }, "name: "],
        [{ platform: "toaster" }, "platform: "],
        [{ user: 1 }, "user: "]
      ] as const) {
        const refused = yield* ask("POST", `${auth}/init`, { key: "", json })
        assert.strictEqual(refused.status, 400)
        assert.isTrue(textOf(refused, "error").startsWith(start), textOf(refused, "error"))
      }
      const refused = yield* ask("GET", `${auth}/poll`, { key: "" })
      assert.strictEqual(refused.status, 400)
      assert.isTrue(textOf(refused, "error").startsWith("token: "), textOf(refused, "error"))
      const json = { "content-type": "application/json" }
      assert.strictEqual(
        (yield* ask("POST", `${auth}/init`, { key: "", body: "{", headers: json })).status,
        400
      )
      assert.strictEqual((yield* ask("POST", `${auth}/init`, { key: "", body: "{}" })).status, 415)
      // Such as curl's of `-d ''`: a body that is not there has no type.
      const form = { "content-type": "application/x-www-form-urlencoded" }
      assert.strictEqual(
        (yield* ask("POST", `${auth}/init`, { key: "", body: "", headers: form })).status,
        200
      )
    })
  )

  it.effect("has a page that runs its own script alone, in no frame", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const page = yield* ask("GET", "/cli", { key: "" })
      assert.strictEqual(page.status, 200)
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/)
      const policy = page.headers.get("content-security-policy") ?? ""
      assert.match(policy, /default-src 'none'.*script-src 'sha256-[^']+'.*frame-ancestors 'none'/)
      assert.strictEqual(page.headers.get("referrer-policy"), "no-referrer")
    })
  )
})

layer(
  TestServer.own({ limits: { cliLoginsPerMinute: 10, cliLoginsWaiting: 12, cliLoginPollsPerMinute: 3 } }),
  live
)("beginning logins of command lines", (it) => {
  it.effect("is asked about so often from one address, in a window of its own", () =>
    Effect.gen(function* () {
      const polls = yield* Effect.all(Array.from({ length: 4 }, () => poll("0123456789012345678901")))
      assert.deepStrictEqual(
        polls.map(({ status }) => status),
        [200, 200, 200, 429]
      )
      const refused = polls.at(-1) ?? assert.fail("nothing was asked")
      assert.match(
        textOf(refused, "error"),
        /^Polls of command lines are asked for too often from your address; try again in \d+ s$/
      )
      assert.isAtLeast(Number(refused.headers.get("retry-after")), 1)
      assert.deepInclude<Limits>(limits, { cliLoginsPerMinute: 10, cliLoginPollsPerMinute: 600 })
    })
  )

  it.effect("is counted by address: ten a minute; and has room for so many that wait", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      yield* sql`INSERT INTO cli_logins (hash, name, platform, ends_at)
          SELECT sha256(n::text::bytea), 'n', 'cli', now() + interval '1 minute' FROM generate_series(1, 12) n`
      const full = yield* ask("POST", `${auth}/init`, { key: "" })
      assert.deepStrictEqual(
        [full.status, full.json],
        [503, { error: "Too many logins wait; try again in a minute" }]
      )
      // Of those that are over, nothing stays.
      yield* sql`UPDATE cli_logins SET ends_at = now() - interval '1 second'`
      yield* begin()
      assert.lengthOf(yield* sql`SELECT 1 FROM cli_logins`, 1)
      const answers = yield* Effect.all(
        Array.from({ length: 9 }, () => ask("POST", `${auth}/init`, { key: "" }))
      )
      const refused = answers.at(-1)
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [...Array.from({ length: 8 }, () => 200), 429]
      )
      assert.match(
        refused === undefined ? "" : textOf(refused, "error"),
        /^Logins of command lines are asked for too often from your address; try again in \d s$/
      )
      assert.isAtLeast(Number(refused?.headers.get("retry-after")), 1)
    })
  )
})

layer(TestServer.own(), live)("a device whose key is the last of the last administrator", (it) => {
  it.effect("stays, as does the key", () =>
    Effect.gen(function* () {
      const { adminKey, ask } = yield* TestServer
      const apiKey = yield* letIn(yield* signIn(adminKey))
      const { data } = (yield* ask("GET", "/api/v1/keys")).json as {
        readonly data: ReadonlyArray<{ readonly id: string; readonly prefix: string }>
      }
      const first = data.find(({ prefix }) => adminKey.startsWith(prefix))
      assert.strictEqual((yield* ask("DELETE", `/api/v1/keys/${first?.id ?? ""}`)).status, 200)
      const listed = yield* ask("GET", "/api/devices", { key: apiKey })
      const [device] = (listed.json as { readonly devices: ReadonlyArray<{ readonly id: string }> }).devices
      const refused = yield* ask("DELETE", `/api/devices/${device?.id ?? ""}`, { key: apiKey })
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [409, { error: "The last key of the last administrator stays; make another one first" }]
      )
      assert.deepStrictEqual((yield* ask("GET", "/api/devices", { key: apiKey })).json, listed.json)
    })
  )
})
