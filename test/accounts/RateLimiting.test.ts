import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { headersOf, RateLimited } from "#schemas/core/Problem.ts"
import type { ConfigChanges } from "#src/Config.ts"
import { TestServer, type Answer, textOf } from "#test/harness/TestServer.ts"

const health = "/api/v1/health"

/** A new key with a rate of its own, whose bucket has been emptied. */
const exhausted = (ratePerMinute: number) =>
  Effect.gen(function* () {
    const { ask, makeKey } = yield* TestServer
    const { key } = yield* makeKey({ rate_limit_per_minute: ratePerMinute })
    const first = yield* ask("GET", health, { key })
    for (let taken = 1; taken < Number(first.headers.get("ratelimit-remaining")) + 1; taken++) {
      assert.strictEqual((yield* ask("GET", health, { key })).status, 200)
    }
    return { key, first }
  })

const told = ({ headers }: Answer) => ({
  limit: headers.get("ratelimit-limit"),
  remaining: headers.get("ratelimit-remaining"),
  reset: headers.get("ratelimit-reset"),
  retryAfter: headers.get("retry-after"),
  shouldRetry: headers.get("x-should-retry")
})

describe("a refusal", () => {
  it("says x-should-retry: false where the wait is over a minute, and not where it is one", () => {
    const headersFor = (seconds: number) =>
      headersOf(RateLimited.of("too often", { retryAfterSeconds: seconds }))
    assert.deepStrictEqual(headersFor(61), { "retry-after": "61", "x-should-retry": "false" })
    assert.deepStrictEqual(headersFor(60), { "retry-after": "60" })
  })
})

const server = (changes: ConfigChanges) => layer(TestServer.own(changes), { excludeTestServices: true })

server({ limits: { ratePerMinute: 600, rateBurst: 120 } })("a key's rate", (it) => {
  it.effect("is told on every answer: 600 a minute and a burst of 120 by default", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { key } = yield* makeKey()
      const first = told(yield* ask("GET", health, { key }))
      assert.deepStrictEqual(first, {
        limit: "600",
        remaining: "119",
        reset: "1",
        retryAfter: null,
        shouldRetry: null
      })
      for (const [method, path] of [
        ["GET", "/api/v1/files/fil_unknown"],
        ["POST", "/api/v1/files"],
        ["GET", "/api/v1/keys?limit=0"],
        ["GET", "/api/v1/admin/users/usr_x"],
        ["GET", "/api/v1/sites"]
      ] as const) {
        assert.strictEqual(told(yield* ask(method, path, { key })).limit, "600", path)
      }
    })
  )

  it.effect(
    "is its own where the key carries one; over it comes 429 with Retry-After, in either family",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { first, key } = yield* exhausted(2)
        assert.deepInclude(told(first), { limit: "2", remaining: "1" })
        const flat = yield* ask("GET", health, { key })
        assert.strictEqual(flat.status, 429)
        const { retryAfter, ...others } = told(flat)
        assert.deepStrictEqual(others, { limit: "2", remaining: "0", reset: "60", shouldRetry: null })
        assert.oneOf(retryAfter, ["29", "30"])
        assert.strictEqual(
          textOf(flat, "error"),
          `Rate limit of 2 requests a minute reached; try again in ${retryAfter} s`
        )
        const nested = yield* ask("GET", "/api/v1/keys", { key })
        assert.strictEqual(nested.status, 429)
        assert.deepInclude((nested.json as { error: object }).error, {
          type: "rate_limit_error",
          code: "rate_limit_exceeded",
          param: null
        })
      })
  )

  it.effect("is counted for each key alone, and not for who has none", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      yield* exhausted(2)
      const { key } = yield* makeKey({ rate_limit_per_minute: 2 })
      assert.strictEqual((yield* ask("GET", health, { key })).status, 200)
      const anonymous = yield* ask("GET", health, { key: "" })
      assert.deepStrictEqual([anonymous.status, anonymous.headers.get("ratelimit-limit")], [401, null])
      assert.isNull((yield* ask("GET", "/healthz", { key: "" })).headers.get("ratelimit-limit"))
    })
  )

  it.effect("may be met by many at once, and lets no more in than it says", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { key } = yield* makeKey({ rate_limit_per_minute: 20 })
      const answers = yield* Effect.all(
        Array.from({ length: 60 }, () => ask("GET", health, { key })),
        { concurrency: "unbounded" }
      )
      const admitted = answers.filter(({ status }) => status === 200).length
      assert.isAtLeast(admitted, 20)
      assert.isAtMost(admitted, 23, "the burst, and what a slow machine refills meanwhile")
    })
  )

  it.effect("leaves collect alone, which counts events", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const made = yield* ask("POST", "/api/v1/sites", { json: { name: "S", domain: "example.com" } })
      const key = textOf(made, "secret")
      for (let sent = 0; sent < 130; sent++) {
        const event = { name: "pageview", url: "https://example.com/", visitor: "v" }
        assert.strictEqual((yield* ask("POST", "/api/v1/collect", { key, json: event })).status, 202)
      }
    })
  )
})

server({ rateLimitMode: "block" })("in block mode", (it) => {
  it.effect("a key over its rate gets 403 with Retry-After, in either family", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key } = yield* exhausted(2)
      const flat = yield* ask("GET", health, { key })
      assert.strictEqual(flat.status, 403)
      assert.match(textOf(flat, "error"), /^Rate limit of 2 requests a minute reached/)
      assert.isAtLeast(Number(told(flat).retryAfter), 1)
      const nested = yield* ask("GET", "/api/v1/keys", { key })
      assert.strictEqual(nested.status, 403)
      assert.deepInclude((nested.json as { error: object }).error, { type: "permission_error" })
    })
  )
})
