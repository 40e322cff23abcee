import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import packageJson from "../../package.json" with { type: "json" }
import { TestServer, type Answer } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

interface Stats {
  readonly user: Record<string, string>
  readonly apiStats: {
    readonly totalApiKeys: number
    readonly requestsToday: number
    readonly requestsThisWeek: number
    readonly requestsThisMonth: number
    readonly errorRate: string
    readonly errorCount: number
  }
  readonly meta: Record<string, string>
}

const statsOf = (key: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", "/api/v1/stats", { key }), ({ json, status }) => {
      assert.strictEqual(status, 200)
      return json as Stats
    })
  )

const failing = (key: string, times: number) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.forEach(Array.from({ length: times }), () => ask("GET", "/api/v1/files/fil_x", { key }))
  )

layer(TestServer.shared, live)("health", (it) => {
  it.effect("says who asked, how long the server is up and which version it has, to any valid key", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const person = yield* makeUser()
      for (const kind of ["account", "router"]) {
        const { key } = yield* makeKey({ name: `${kind} of ada`, kind }, person.key)
        const answer = yield* ask("GET", "/api/v1/health", { key })
        assert.strictEqual(answer.status, 200)
        const { timestamp, uptime, ...rest } = answer.json as Record<string, unknown>
        assert.deepStrictEqual(rest, {
          status: "ok",
          version: packageJson.version,
          apiKey: `${kind} of ada`,
          userId: person.id,
          message: "OK"
        })
        assert.match(String(timestamp), instant)
        assert.isAbove(Number(uptime), 0)
      }
    })
  )
})

layer(TestServer.own(), live)("stats", (it) => {
  it.effect("has the owner, their keys, and 0.00% where nothing was asked before", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const person = yield* makeUser()
      const { apiStats, meta, user } = yield* statsOf(person.key)
      assert.deepStrictEqual(Object.keys(user).toSorted(), ["createdAt", "email", "id", "name", "role"])
      assert.deepInclude(user, { id: person.id, role: "user" })
      assert.match(user["createdAt"] ?? "", instant)
      assert.deepStrictEqual(apiStats, {
        totalApiKeys: 1,
        requestsToday: 0,
        requestsThisWeek: 0,
        requestsThisMonth: 0,
        errorRate: "0.00%",
        errorCount: 0
      })
      assert.deepStrictEqual(Object.keys(meta).toSorted(), ["apiKey", "timestamp"])
      assert.strictEqual(meta["apiKey"], "test")
      assert.match(meta["timestamp"] ?? "", instant)
    })
  )

  it.effect("counts the requests of all the owner's keys and nobody else's, errors from status 400 on", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const [person, other] = [yield* makeUser(), yield* makeUser()]
      // Making the second key is the first request of this owner.
      const second = yield* makeKey({ kind: "router" }, person.key)
      yield* failing(person.key, 1)
      yield* failing(second.key, 1)
      yield* failing(other.key, 5)
      // 403: a router key at management.
      yield* ask("GET", "/api/v1/keys", { key: second.key })
      yield* ask("GET", "/api/v1/users?limit=0", { key: person.key })
      // Unowned: without a key, and with an invalid one.
      yield* ask("GET", "/api/v1/health", { key: "" })
      yield* ask("GET", "/api/v1/health", { key: `${person.key}x` })
      yield* ask("GET", "/api/v1/health", { key: second.key })
      yield* ask("GET", "/api/v1/health", { key: person.key })
      const { apiStats } = yield* statsOf(second.key)
      assert.deepStrictEqual(apiStats, {
        totalApiKeys: 2,
        requestsToday: 7,
        requestsThisWeek: 7,
        requestsThisMonth: 7,
        errorRate: "42.86%",
        errorCount: 3
      })
      yield* ask("DELETE", `/api/v1/keys/${second.id}`, { key: person.key })
      assert.strictEqual((yield* statsOf(person.key)).apiStats.totalApiKeys, 1)
    })
  )

  it.effect("counts UTC days, ISO weeks from Monday, and calendar months", () =>
    Effect.gen(function* () {
      const { makeUser, stopClockAt } = yield* TestServer
      const person = yield* makeUser()
      const at = (time: string) => stopClockAt(Date.parse(time))
      const counts = Effect.map(statsOf(person.key), ({ apiStats }) => [
        apiStats.requestsToday,
        apiStats.requestsThisWeek,
        apiStats.requestsThisMonth,
        apiStats.errorRate
      ])
      // 30 November 2026 is a Monday, the 29th the end of a week and not of the month.
      at("2026-11-29T23:59:59.999Z")
      yield* failing(person.key, 1)
      const seen = [yield* counts]
      at("2026-11-30T00:00:00.000Z")
      seen.push(yield* counts)
      at("2026-12-01T00:00:00.000Z")
      seen.push(yield* counts)
      at("2026-12-07T00:00:00.000Z")
      seen.push(yield* counts)
      stopClockAt(undefined)
      assert.deepStrictEqual(seen, [
        [1, 1, 1, "100.00%"],
        [0, 0, 2, "50.00%"],
        [0, 1, 0, "0.00%"],
        [0, 0, 1, "0.00%"]
      ])
    })
  )

  it.effect("is kept in the database, not in the process alone", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const person = yield* makeUser()
      yield* failing(person.key, 3)
      yield* statsOf(person.key)
      const rows = yield* sql`SELECT requests::int AS requests, errors::int AS errors FROM request_counts
        WHERE user_id = ${person.id}`
      assert.deepStrictEqual(rows, [{ requests: 3, errors: 3 }])
    })
  )
})

layer(TestServer.shared, live)("every keyed answer", (it) => {
  it.effect("has the rate limit's headers, whatever it says", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const hasHeaders = ({ headers }: Answer): boolean =>
        ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"].every((name) =>
          /^\d+$/.test(headers.get(name) ?? "")
        )
      for (const [method, path, status] of [
        ["GET", "/api/v1/health", 200],
        ["GET", "/api/v1/users?limit=0", 400],
        ["GET", "/api/v1/files/fil_x", 404],
        ["DELETE", "/api/v1/files/fil_x", 404],
        ["GET", "/api/v1/keys?limit=x", 400],
        ["POST", "/api/v1/keys", 400],
        ["POST", "/api/v1/admin/users", 400],
        ["POST", "/api/v1/files", 400],
        ["HEAD", "/api/v1/health", 200]
      ] as const) {
        const answer = yield* ask(method, path)
        assert.strictEqual(answer.status, status, `${method} ${path}`)
        assert.isTrue(hasHeaders(answer), `${method} ${path}`)
      }
      assert.isFalse(hasHeaders(yield* ask("GET", "/api/v1/health", { key: "" })))
      assert.isFalse(hasHeaders(yield* ask("GET", "/healthz")))
    })
  )
})
