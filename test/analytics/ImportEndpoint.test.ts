import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer, type Asked, textOf } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const
const dayMillis = 86_400_000

const agent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"

/** A page view of some days ago, as a line of NDJSON. */
const view = (path: string, daysAgo = 0, userAgent = agent): string =>
  JSON.stringify({
    url: path,
    ip: "198.51.100.7",
    userAgent,
    timestamp: Date.now() - 60_000 - daysAgo * dayMillis
  })

const makeSite = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(
    ask("POST", "/api/v1/sites", { json: { name: "Log", domain: "example.org" } }),
    ({ json }) => (json as { site: { id: string } }).site.id
  )
)

const part = (site: string, query: string, lines: ReadonlyArray<string>, asked: Asked = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", `/api/v1/sites/${site}/import?${query}`, {
      headers: { "content-type": "application/x-ndjson" },
      body: lines.join("\n"),
      ...asked
    })
  )

const pageviews = (site: string, period = "30d") =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", `/api/v1/sites/${site}/stats?period=${period}`), ({ json, status }) => {
      assert.strictEqual(status, 200)
      return (json as { summary: { pageviews: number } }).summary.pageviews
    })
  )

const nothing = { stored: 0, failed: 0, dropped: {}, bots: {}, errors: [] }

layer(TestServer.shared, live)("an import", (it) => {
  it.effect("takes events however old, part after part, and says where to go on", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      const first = yield* part(site, "import=a&offset=0", [view("/1", 20), view("/2", 10)])
      assert.deepStrictEqual([first.status, first.json], [200, { ...nothing, next: 2, stored: 2 }])
      const last = yield* part(site, "import=a&offset=2&last=true", [view("/3")])
      assert.deepStrictEqual(last.json, { ...nothing, next: 3, stored: 1 })
      assert.strictEqual(yield* pageviews(site), 3)
    })
  )

  it.effect("skips what it has: a part may be sent again, whole or overlapping, and counts once", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      const lines = ["/1", "/2", "/3", "/4"].map((path) => view(path))
      yield* part(site, "import=a&offset=0", lines.slice(0, 3))
      const again = yield* part(site, "import=a&offset=0", lines.slice(0, 3))
      assert.deepStrictEqual(again.json, { ...nothing, next: 3 })
      const overlapping = yield* part(site, "import=a&offset=1", lines.slice(1))
      assert.deepStrictEqual(overlapping.json, { ...nothing, next: 4, stored: 1 })
      const asked = yield* part(site, "import=a&offset=0", [])
      assert.deepStrictEqual(asked.json, { ...nothing, next: 4 })
      assert.strictEqual(yield* pageviews(site), 4)
      // Another import of the same lines is another import.
      assert.deepInclude((yield* part(site, "import=b&offset=0", lines)).json, { stored: 4 })
    })
  )

  it.effect("refuses a part beyond what it has, as lines would be missing", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      const refused = yield* part(site, "import=a&offset=1", [view("/")])
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [400, { error: "offset: the import is at 0; send what follows there" }]
      )
    })
  )

  it.effect(
    "tells which lines are no events, counted over the whole import, and why others do not count",
    () =>
      Effect.gen(function* () {
        const site = yield* makeSite
        yield* part(site, "import=a&offset=0", [view("/")])
        const mixed = [
          "{",
          '{"url":5}',
          view("/ok"),
          view("/bot", 0, "Googlebot/2.1 (+http://www.google.com/bot.html)"),
          '{"url":"/deep","country":"DEU"}'
        ]
        const answer = yield* part(site, "import=a&offset=1", mixed)
        assert.strictEqual(answer.status, 200)
        const { bots, dropped, errors, ...counts } = answer.json as {
          bots: Record<string, number>
          dropped: Record<string, number>
          errors: ReadonlyArray<{ line: number; error: string }>
        }
        assert.deepStrictEqual(counts, { next: 6, stored: 1, failed: 3 })
        assert.deepStrictEqual([dropped, bots], [{ bot: 1 }, { Googlebot: 1 }])
        assert.deepStrictEqual(
          errors.map(({ line }) => line),
          [1, 2, 5]
        )
        assert.match(errors[1]?.error ?? "", /^url/)
        const many = Array.from({ length: 30 }, () => "no json")
        const failed = (yield* part(site, "import=b&offset=0", many)).json as {
          failed: number
          errors: Array<unknown>
        }
        assert.deepStrictEqual([failed.failed, failed.errors.length], [30, 20])
      })
  )

  it.effect("takes 10,000 lines and 8 MiB a request; one more is 413, and none of it counts", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      const lines = Array.from({ length: 10_000 }, (_, index) => view(`/${index}`))
      const more = yield* part(site, "import=a&offset=0", [...lines, view("/")])
      assert.deepStrictEqual([more.status, more.json], [413, { error: "body: at most 10000 lines" }])
      assert.deepInclude((yield* part(site, "import=a&offset=0", lines)).json, { stored: 10_000 })
      const limit = 8 * 1024 * 1024
      const padded = (bytes: number) => [view("/"), " ".repeat(bytes - view("/").length - 1)]
      const large = yield* part(site, "import=b&offset=0", padded(limit + 1))
      assert.deepStrictEqual([large.status, large.json], [413, { error: `body: at most ${limit} bytes` }])
      assert.strictEqual((yield* part(site, "import=b&offset=0", padded(limit))).status, 200)
    })
  )

  it.effect("names the query parameter that is missing or out of its limits", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      for (const [query, field] of [
        ["offset=0", "import"],
        ["import=&offset=0", "import"],
        [`import=${"x".repeat(65)}&offset=0`, "import"],
        ["import=a%00&offset=0", "import"],
        ["import=a", "offset"],
        ["import=a&offset=-1", "offset"],
        ["import=a&offset=1.5", "offset"],
        ["import=a&offset=1000000001", "offset"],
        ["import=a&offset=0&last=yes", "last"]
      ] as const) {
        const refused = yield* part(site, query, [view("/")])
        assert.strictEqual(refused.status, 400, query)
        assert.isTrue(
          textOf(refused, "error").startsWith(`${field}: `),
          `${query} ${JSON.stringify(refused.json)}`
        )
      }
      const longest = `import=${"x".repeat(64)}&offset=0&last=false`
      assert.strictEqual((yield* part(site, longest, [view("/")])).status, 200)
      assert.strictEqual((yield* part(site, "import=a&offset=1000000000", [])).status, 400)
    })
  )

  it.effect("hashes visitors with a salt of its own, one for all parts, thrown away with the last", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const site = yield* makeSite
      const visitors = Effect.map(
        ask("GET", `/api/v1/sites/${site}/stats`),
        ({ json }) => (json as { summary: { visitors: number } }).summary.visitors
      )
      const salts = sql<{ salt: string | null }>`SELECT salt FROM imports WHERE site = ${site} ORDER BY name`
      yield* part(site, "import=a&offset=0", [view("/1", 3)])
      yield* part(site, "import=a&offset=1", [view("/2", 3)])
      assert.strictEqual(yield* visitors, 1)
      yield* part(site, "import=b&offset=0", [view("/3", 3)])
      assert.strictEqual(yield* visitors, 2, "what one import knows of a visitor, another cannot meet")
      const [first, second] = yield* salts
      assert.match(first?.salt ?? "", /^[0-9a-f]{64}$/)
      assert.notStrictEqual(first?.salt, second?.salt)
      yield* part(site, "import=a&offset=2&last=true", [])
      assert.deepStrictEqual(yield* salts, [{ salt: null }, { salt: second?.salt ?? "" }])
    })
  )

  it.effect("is for account keys of the site's owner alone", () =>
    Effect.gen(function* () {
      const { makeKey, makeUser } = yield* TestServer
      const site = yield* makeSite
      const router = yield* makeKey({ kind: "router" })
      const stranger = yield* makeUser()
      const status = (key: string) =>
        Effect.map(part(site, "import=a&offset=0", [view("/")], { key }), (answer) => answer.status)
      assert.deepStrictEqual(
        [yield* status(router.key), yield* status(stranger.key), yield* status("")],
        [403, 404, 401]
      )
      assert.strictEqual(yield* pageviews(site), 0)
    })
  )
})
