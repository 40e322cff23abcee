import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type RealtimeEvent, RealtimeRing } from "#actors/analytics/RealtimeRing.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { PlainRing } from "./PlainRing.ts"
import { noon } from "./Senders.ts"

const plenty = { sitesMax: 100, presencesMax: 100_000 }
const minute = 60_000

const view = (fields: Partial<RealtimeEvent> = {}): RealtimeEvent => ({
  site: "st_1",
  kind: "pageview",
  ts: noon,
  visitor: 1n,
  path: "/",
  ...fields
})

/** The figures from the whole list of events, by their definition, in whole seconds. */
const recount = (events: ReadonlyArray<RealtimeEvent>, nowMillis: number) => {
  const now = Math.floor(nowMillis / 1000)
  const ages = events
    .filter(({ kind }) => kind !== "engage")
    .map((event) => ({ ...event, age: now - Math.floor(event.ts / 1000) }))
  const active = ages.filter(({ age }) => age < 300)
  const visitorsOf = (path: string) =>
    new Set(
      active.filter((event) => event.kind === "pageview" && event.path === path).map(({ visitor }) => visitor)
    ).size
  const paths = [...new Set(active.filter(({ kind }) => kind === "pageview").map(({ path }) => path))]
  const pageviews = ages.filter(({ kind }) => kind === "pageview")
  return {
    visitors: new Set(active.map(({ visitor }) => visitor)).size,
    pageviews: pageviews.filter(({ age }) => age < 300).length,
    pages: paths
      .map((path) => ({ path, visitors: visitorsOf(path) }))
      .sort((a, b) => b.visitors - a.visitors || (a.path < b.path ? -1 : 1))
      .slice(0, 5),
    perMinute: Array.from({ length: 30 }, (_, index) => ({
      minute: 29 - index,
      pageviews: pageviews.filter(({ age }) => Math.floor(age / 60) === 29 - index).length
    }))
  }
}

describe("realtime figures", () => {
  it("are empty, but complete, for a site that nobody visits", () => {
    const { pages, pageviews, perMinute, visitors } = new RealtimeRing(plenty).snapshot("st_none", noon)
    assert.deepStrictEqual({ pages, pageviews, visitors }, { pages: [], pageviews: 0, visitors: 0 })
    assert.deepStrictEqual(
      perMinute.map(({ minute }) => minute),
      Array.from({ length: 30 }, (_, i) => 29 - i)
    )
    assert.isTrue(perMinute.every(({ pageviews }) => pageviews === 0))
  })

  it("count visitors and page views of the last five minutes, and no longer", () => {
    const ring = new RealtimeRing(plenty)
    ring.add(view(), noon)
    ring.add(view({ visitor: 2n }), noon)
    ring.add(view({ visitor: 2n, path: "/b" }), noon)
    assert.deepInclude(ring.snapshot("st_1", noon + 5 * minute - 1000), { visitors: 2, pageviews: 3 })
    assert.deepInclude(ring.snapshot("st_1", noon + 5 * minute), { visitors: 0, pageviews: 0, pages: [] })
    assert.strictEqual(ring.snapshot("st_1", noon + 5 * minute).perMinute[24]?.pageviews, 3)
  })

  it("show the five pages with most visitors, not with most views", () => {
    const ring = new RealtimeRing(plenty)
    for (let page = 1; page <= 7; page++) {
      for (let visitor = 0; visitor < page; visitor++) {
        ring.add(view({ path: `/${page}`, visitor: BigInt(visitor) }), noon)
      }
    }
    for (let again = 0; again < 20; again++) ring.add(view({ path: "/1" }), noon)
    assert.deepStrictEqual(
      ring.snapshot("st_1", noon).pages,
      [7, 6, 5, 4, 3].map((n) => ({ path: `/${n}`, visitors: n }))
    )
  })

  it("count an event as a visitor but not as a page view, and an engage ping as neither", () => {
    const ring = new RealtimeRing(plenty)
    ring.add(view({ kind: "event", visitor: 5n }), noon)
    ring.add(view({ kind: "engage", visitor: 6n }), noon)
    assert.deepInclude(ring.snapshot("st_1", noon), { visitors: 1, pageviews: 0, pages: [] })
  })

  it("agree with a recount of all events, late ones included, at any time", () => {
    const turn = fc.record({
      wait: fc.constantFrom(0, 0, 1, 999, 1000, 7_000, 61_000, 400_000, 2_000_000),
      late: fc.constantFrom(0, 0, 0, 500, 30_000, 290_000, 301_000, 1_799_000, 1_801_000),
      kind: fc.constantFrom("pageview", "pageview", "event", "engage"),
      visitor: fc.bigInt({ min: 0n, max: 5n }),
      path: fc.constantFrom("/", "/a", "/b", "/c", "/d", "/e", "/f")
    })
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 60 }), (turns) => {
        const ring = new RealtimeRing(plenty)
        const events: Array<RealtimeEvent> = []
        let now = noon
        for (const { late, wait, ...fields } of turns) {
          now += wait
          const event = view({ ...fields, kind: fields.kind as RealtimeEvent["kind"], ts: now - late })
          events.push(event)
          ring.add(event, now)
          assert.deepStrictEqual(ring.snapshot("st_1", now), recount(events, now))
        }
      }),
      { numRuns: 300 }
    )
  })

  it("are those of plain lists where there is no room for all", () => {
    const turn = fc.record({
      wait: fc.constantFrom(0, 0, 500, 4_000, 16_000, 100_000, 400_000),
      late: fc.constantFrom(0, 0, 0, 500, 30_000, 290_000),
      kind: fc.constantFrom<RealtimeEvent["kind"]>("pageview", "pageview", "pageview", "event"),
      visitor: fc.bigInt({ min: 0n, max: 12n }).map((one) => one * 0x1_0000_0001n),
      path: fc.constantFrom("/", "/a", "/b", "/c", "/d", "/e", "/f")
    })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(turn, { maxLength: 80 }), (max, turns) => {
        const ring = new RealtimeRing({ sitesMax: 2, presencesMax: max })
        const plain = new PlainRing(max)
        let now = noon
        for (const { late, wait, ...fields } of turns) {
          now += wait
          const event = view({ ...fields, ts: now - late })
          ring.add(event, now)
          plain.add(event, now)
          assert.deepStrictEqual(ring.snapshot("st_1", now), plain.snapshot(now))
          assert.strictEqual(ring.stats().presences, plain.used)
        }
      }),
      { numRuns: 500 }
    )
  })

  it("keep thousands of visitors of several sites apart, through every growth, also those of one hash", () => {
    const ring = new RealtimeRing({ sitesMax: 100, presencesMax: 20_000 })
    const seen = Array.from({ length: 3 }, () => new Map<bigint, number>())
    const random = new SeededRandom(24)
    let now = noon
    for (let turn = 0; turn < 60_000; turn++) {
      now += turn % 20_000 === 0 ? 400_000 : 15
      const site = random.below(3)
      const visitor = BigInt(random.below(40)) * 0x1_0000_0000n + BigInt(random.below(64))
      ring.add(view({ site: `st_${site}`, kind: "event", visitor, ts: now }), now)
      seen[site]?.set(visitor, Math.floor(now / 1000))
      if (turn % 4_001 !== 0) continue
      for (const [of, seconds] of seen.entries()) {
        const active = [...seconds.values()].filter((second) => second > Math.floor(now / 1000) - 300)
        assert.strictEqual(ring.snapshot(`st_${of}`, now).visitors, active.length)
      }
    }
  })

  it("keep sites apart, and survive a clock that jumps back", () => {
    const ring = new RealtimeRing(plenty)
    ring.add(view(), noon)
    ring.add(view({ site: "st_2" }), noon)
    assert.strictEqual(ring.snapshot("st_1", noon).pageviews, 1)
    ring.add(view({ ts: noon - 3_600_000 }), noon - 3_600_000)
    assert.strictEqual(ring.snapshot("st_1", noon).pageviews, 1)
  })

  it("hold no more visitors and pages than their limit: the oldest go, page views are still counted", () => {
    const ring = new RealtimeRing({ sitesMax: 100, presencesMax: 10 })
    for (let visitor = 0; visitor < 50; visitor++) {
      ring.add(view({ visitor: BigInt(visitor), ts: noon + visitor * 1000 }), noon + visitor * 1000)
      assert.isAtMost(ring.stats().presences, 10)
    }
    ring.add(view({ site: "st_2" }), noon + 50_000)
    assert.deepInclude(ring.snapshot("st_1", noon + 50_000), { visitors: 5, pageviews: 50 })
    assert.deepInclude(ring.snapshot("st_2", noon + 50_000), { visitors: 0, pageviews: 1 })
    for (let page = 0; page < 50; page++)
      ring.add(view({ path: `/${page}`, ts: noon + 51_000 }), noon + 51_000)
    assert.isAtMost(ring.stats().presences, 10)
    ring.snapshot("st_1", noon + 3_600_000)
    assert.strictEqual(ring.stats().presences, 0)
  })

  it("keep nobody of a site that has fallen silent, as long as others have visitors", () => {
    const ring = new RealtimeRing({ sitesMax: 100, presencesMax: 1_000 })
    for (let visitor = 0; visitor < 500; visitor++) ring.add(view({ visitor: BigInt(visitor) }), noon)
    assert.deepStrictEqual(ring.stats(), { sites: 1, presences: 1_000 })
    const later = noon + 6 * minute
    ring.add(view({ site: "st_2", ts: later }), later)
    ring.add(view({ site: "st_2", ts: later + 1 }), later + 1)
    assert.deepStrictEqual(ring.stats(), { sites: 2, presences: 2 })
    assert.strictEqual(ring.snapshot("st_2", later).visitors, 1)
    assert.strictEqual(ring.snapshot("st_1", later).perMinute[23]?.pageviews, 500)
  })

  it("hold no more sites than their limit: the quietest goes, its presences with it", () => {
    const ring = new RealtimeRing({ sitesMax: 2, presencesMax: 100 })
    for (let site = 1; site <= 5; site++) {
      ring.add(view({ site: `st_${site}`, ts: noon + site * 1000 }), noon + site * 1000)
    }
    assert.deepStrictEqual(ring.stats(), { sites: 2, presences: 4 })
    assert.strictEqual(ring.snapshot("st_5", noon + 5000).visitors, 1)
    assert.strictEqual(ring.snapshot("st_1", noon + 5000).visitors, 0)
  })
})
