import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { makeSite, rowsOf, statusAndBody } from "./SiteProbe.ts"
import { threeVisits } from "./SiteVisits.ts"

const live = { excludeTestServices: true } as const

type Row = readonly [value: string | null, visitors: number, pageviews: number, count: number]

/** The rows of each dimension for `threeVisits`: by visitors, then count, then value, unknown ones last. */
const expectedRows: Readonly<Record<string, ReadonlyArray<Row>>> = {
  page: [
    ["/", 2, 2, 2],
    ["/post", 1, 1, 1],
    ["/pricing", 1, 1, 1]
  ],
  entry: [
    ["/", 2, 3, 2],
    ["/post", 1, 1, 1]
  ],
  exit: [
    ["/", 1, 1, 1],
    ["/post", 1, 1, 1],
    ["/pricing", 1, 2, 1]
  ],
  source: [
    ["Google", 1, 2, 1],
    ["list", 1, 1, 1],
    [null, 1, 1, 1]
  ],
  referrer: [
    [null, 2, 2, 2],
    ["https://google.com/search", 1, 2, 1]
  ],
  campaign: [
    [null, 2, 3, 2],
    ["spring", 1, 1, 1]
  ],
  medium: [
    [null, 2, 3, 2],
    ["email", 1, 1, 1]
  ],
  country: [
    ["DE", 1, 2, 1],
    ["FR", 1, 1, 1],
    [null, 1, 1, 1]
  ],
  browser: [
    ["Chrome", 1, 2, 1],
    ["Safari", 1, 1, 1],
    [null, 1, 1, 1]
  ],
  os: [
    ["Windows", 1, 2, 1],
    ["iOS", 1, 1, 1],
    [null, 1, 1, 1]
  ],
  device: [
    ["desktop", 1, 2, 1],
    ["mobile", 1, 1, 1],
    [null, 1, 1, 1]
  ],
  event: [
    ["signup", 2, 0, 3],
    ["scroll", 1, 0, 5]
  ],
  hostname: [
    ["example.com", 2, 3, 2],
    ["blog.example.com", 1, 1, 1]
  ],
  term: [
    [null, 2, 3, 2],
    ["boots", 1, 1, 1]
  ],
  content: [
    [null, 2, 3, 2],
    ["top", 1, 1, 1]
  ],
  channel: [
    ["Direct", 1, 1, 1],
    ["Email", 1, 1, 1],
    ["Search", 1, 2, 1]
  ],
  "prop:plan": [
    ["pro", 2, 0, 2],
    ["free", 1, 0, 1]
  ],
  "prop:nothing": []
}

layer(TestServer.shared, live)("reads of a site", (it) => {
  describe("GET /api/v1/sites/:id/breakdown", () => {
    it.effect("shows of every dimension who was there, by unique visitors; unknown values are null", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        yield* site.collect(threeVisits)
        for (const [dimension, expected] of Object.entries(expectedRows)) {
          const answer = yield* site.read(`breakdown?dimension=${dimension}&period=24h`)
          assert.deepStrictEqual(rowsOf(answer), expected, dimension)
          const { rows: _rows, ...rest } = answer.json as { rows: unknown }
          assert.deepStrictEqual(rest, { dimension, period: "24h", filters: {} })
        }
      })
    )

    it.effect("asks for the last 30 days where no period is given", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        assert.deepStrictEqual(statusAndBody(yield* site.read("breakdown?dimension=page")), [
          200,
          { dimension: "page", period: "30d", filters: {}, rows: [] }
        ])
      })
    )

    it.effect("shows 10 rows, or as many as limit says: 1 to 500", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        for (let call = 0; call < 6; call++) {
          const hundred = Array.from({ length: 100 }, (_, index) => ({
            url: `/${call}/${index}`,
            visitor: "v"
          }))
          yield* site.collect(hundred)
        }
        const rows = (query: string) =>
          Effect.map(site.read(`breakdown?dimension=page${query}`), (answer) => rowsOf(answer).length)
        assert.deepStrictEqual(
          [yield* rows(""), yield* rows("&limit=1"), yield* rows("&limit=500")],
          [10, 1, 500]
        )
        for (const limit of ["0", "501", "-1", "1.5", "ten", ""]) {
          const refused = yield* site.read(`breakdown?dimension=page&limit=${limit}`)
          assert.strictEqual(refused.status, 400, limit)
          assert.match(textOf(refused, "error"), /^limit: /, limit)
        }
      })
    )

    it.effect("requires a dimension, and one that there is: 400 names it", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        const missing = yield* site.read("breakdown")
        assert.deepStrictEqual(statusAndBody(missing), [400, { error: "dimension: is required" }])
        const unknown = [
          "",
          "pages",
          "Page",
          "prop",
          "prop:",
          `prop:${"x".repeat(65)}`,
          "visitor",
          "constructor"
        ]
        for (const dimension of unknown) {
          const refused = yield* site.read(`breakdown?dimension=${dimension}`)
          assert.strictEqual(refused.status, 400, dimension)
          assert.match(textOf(refused, "error"), /^dimension: expected one of page, entry,/, dimension)
        }
        assert.strictEqual((yield* site.read(`breakdown?dimension=prop:${"x".repeat(64)}`)).status, 200)
      })
    )

    it.effect("shows what was collected before the request, also when it was collected just now", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        for (const visitors of [1, 2, 3]) {
          yield* site.collect([{ url: "/", visitor: `v${visitors}` }])
          assert.deepStrictEqual(rowsOf(yield* site.read("breakdown?dimension=page&period=today")), [
            ["/", visitors, visitors, visitors]
          ])
        }
      })
    )

    it.effect("keeps sites apart", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        const other = yield* makeSite()
        yield* site.collect(threeVisits)
        for (const dimension of Object.keys(expectedRows)) {
          assert.deepStrictEqual(rowsOf(yield* other.read(`breakdown?dimension=${dimension}`)), [], dimension)
        }
      })
    )
  })

  /** Each read of a site's owner, and a query with which it answers 200. */
  const ownersReads = ["stats", "breakdown?dimension=page", "realtime", "drops", "export"]

  describe("all of them", () => {
    it.effect("count against the key's rate, and tell it", () =>
      Effect.gen(function* () {
        const { makeKey } = yield* TestServer
        const site = yield* makeSite()
        const { key } = yield* makeKey({ rate_limit_per_minute: 5 })
        for (const [taken, rest] of ownersReads.entries()) {
          const { headers, status } = yield* site.read(rest, { key })
          assert.strictEqual(status, 200, rest)
          assert.strictEqual(headers.get("ratelimit-limit"), "5", rest)
          assert.isAtMost(Number(headers.get("ratelimit-remaining")), 5 - taken, rest)
        }
      })
    )

    it.effect("are only read: other methods are 405 with Allow", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const site = yield* makeSite()
        for (const rest of ["stats", "breakdown", "realtime", "drops", "export"]) {
          const refused = yield* ask("POST", `/api/v1/sites/${site.id}/${rest}`, { json: {} })
          assert.strictEqual(refused.status, 405, rest)
          assert.include(refused.headers.get("allow") ?? "", "GET", rest)
        }
      })
    )
  })
})
