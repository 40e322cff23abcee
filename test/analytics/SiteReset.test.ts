import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { chrome } from "./Senders.ts"
import { makeSite, type SiteProbe } from "./SiteProbe.ts"

const live = { excludeTestServices: true } as const

const reset = (id: string, key?: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", `/api/v1/sites/${id}/reset`, key === undefined ? {} : { key })
  )

/** Parts of the answers, by the name that each has. */
interface Figures {
  readonly summary: { readonly pageviews: number }
  readonly rows: ReadonlyArray<unknown>
  readonly drops: ReadonlyArray<unknown>
  readonly imports: ReadonlyArray<unknown>
  readonly pageviews: number
  readonly visitors: number
}

/** All that a site shows of the events that it took. */
const shown = (site: SiteProbe) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const of = (rest: string) => Effect.map(site.read(rest), ({ json }) => json as Figures)
    const list = yield* ask("GET", "/api/v1/sites")
    const { sites } = list.json as { sites: ReadonlyArray<Record<string, unknown> & { id: string }> }
    const { pageviews: recent, visitors: present } = yield* of("realtime")
    return {
      pageviews: (yield* of("stats")).summary.pageviews,
      pages: (yield* of("breakdown?dimension=page")).rows.length,
      realtime: [recent, present],
      drops: (yield* of("drops")).drops.length,
      imports: (yield* of("imports")).imports.length,
      exported: Buffer.from((yield* site.read("export?period=today")).bytes)
        .toString()
        .split("\n")
        .filter((line) => line !== "").length,
      isFirstKnown: sites.find(({ id }) => id === site.id)?.["firstEventAt"] !== null
    }
  })

const nothing = {
  pageviews: 0,
  pages: 0,
  realtime: [0, 0],
  drops: 0,
  imports: 0,
  exported: 0,
  isFirstKnown: false
}

const event = (path: string, id?: string) => ({
  url: `https://example.com${path}`,
  visitor: "v",
  ...(id === undefined ? {} : { id })
})

const line = (path: string): string => JSON.stringify({ ...event(path), timestamp: Date.now() - 86_400_000 })

layer(TestServer.shared, live)("a site that is reset", (it) => {
  it.effect("shows nothing of the time before from the answer on, wherever it was", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = yield* makeSite()
      yield* site.collect([event("/a", "1"), event("/b", "2")])
      yield* site.importLines("old", [line("/c")])
      yield* ask("POST", "/api/event", {
        key: "",
        headers: { "user-agent": chrome },
        json: { s: site.id, k: "pageview", u: "https://elsewhere.example/" }
      })
      const before = yield* shown(site)
      assert.deepInclude(before, { pageviews: 3, pages: 3, realtime: [2, 1], imports: 1, exported: 2 })
      assert.deepInclude(before, { drops: 1, isFirstKnown: true })

      // An event on its way to the store at that moment is of the time before, too.
      yield* site.collect([event("/d")])
      const askedAt = Date.now()
      const answer = yield* reset(site.id)
      assert.strictEqual(answer.status, 200)
      assert.closeTo(Date.parse(textOf(answer, "resetAt")), askedAt, 60_000)
      assert.deepStrictEqual(yield* shown(site), nothing)
    })
  )

  it.effect("counts on at once: ids, lines and visits begin anew", () =>
    Effect.gen(function* () {
      const site = yield* makeSite()
      yield* site.collect([event("/a", "1"), event("/b")])
      yield* site.importLines("old", [line("/c")])
      yield* reset(site.id)
      // The same id and the same import again, by the same visitor.
      yield* site.collect([event("/a", "1")])
      yield* site.importLines("old", [line("/c"), line("/d")])
      const after = yield* shown(site)
      assert.deepInclude(after, { pageviews: 3, pages: 3, realtime: [1, 1], imports: 1, drops: 0 })
      assert.isTrue(after.isFirstKnown)
      const { json } = yield* site.read("stats?period=today")
      assert.deepInclude((json as { summary: object }).summary, { visitors: 1, visits: 1, pageviews: 1 })
    })
  )

  it.effect("may be reset again and again, by its owner alone", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const site = yield* makeSite()
      const { key } = yield* makeUser()
      yield* site.collect([event("/a")])
      assert.strictEqual((yield* reset(site.id, key)).status, 404)
      assert.strictEqual((yield* shown(site)).pageviews, 1)
      const first = textOf(yield* reset(site.id), "resetAt")
      const second = textOf(yield* reset(site.id), "resetAt")
      assert.isAtLeast(Date.parse(second), Date.parse(first))
      assert.deepStrictEqual(yield* shown(site), nothing)
      const { json } = yield* ask("GET", "/api/v1/sites")
      const { sites } = json as { sites: ReadonlyArray<{ id: string; resetAt: string | null }> }
      assert.strictEqual(sites.find(({ id }) => id === site.id)?.resetAt, second)
      yield* ask("DELETE", `/api/v1/sites/${site.id}`)
      assert.strictEqual((yield* reset(site.id)).status, 404)
    })
  )
})

layer(TestServer.shared, live)("a site that keeps its statistics for some days", (it) => {
  it.effect("takes no event and no line of the days before", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = yield* makeSite({ retentionDays: 2 })
      const day = 86_400_000
      const today = Math.floor(Date.now() / day) * day
      const at = (timestamp: number) => ({ ...event("/a"), timestamp })
      const [kept, late] = [at(today - 2 * day), at(today - 2 * day - 1)]
      const sent = yield* ask("POST", "/api/v1/collect", { key: site.secret, json: [kept, late] })
      assert.deepInclude(sent.json, { accepted: 1 })
      const { results } = sent.json as { results: ReadonlyArray<{ error?: string }> }
      assert.strictEqual(results[1]?.error, "timestamp: must not be before the days that the site keeps")
      const imported = yield* ask("POST", `/api/v1/sites/${site.id}/import?import=a&offset=0`, {
        headers: { "content-type": "application/x-ndjson" },
        body: [kept, late].map((one) => JSON.stringify(one)).join("\n")
      })
      assert.deepInclude(imported.json, { stored: 1, failed: 0, dropped: { late: 1 } })
      const drops = (yield* site.read("drops")).json as { drops: ReadonlyArray<object> }
      assert.deepInclude(drops.drops[0], { reason: "late", count: 2 })
    })
  )

  it.effect("has 1 to 3,650 days, or null for all", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = yield* makeSite()
      const change = (retentionDays: unknown) =>
        ask("PATCH", `/api/v1/sites/${site.id}`, { json: { retentionDays } })
      for (const wrong of [0, 3_651, 1.5, "30", -1]) {
        const { json, status } = yield* change(wrong)
        assert.strictEqual(status, 400)
        assert.include(JSON.stringify(json), "retentionDays")
      }
      for (const right of [1, 3_650, null]) {
        const { json, status } = yield* change(right)
        assert.deepStrictEqual([status, (json as { retentionDays: unknown }).retentionDays], [200, right])
      }
    })
  )
})
