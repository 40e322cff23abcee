import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import { periods, rangeOf, type Range } from "#streams/analytics/Periods.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { EventDrain } from "#src/analytics/EventDrain.ts"
import * as EventSink from "#src/analytics/EventSink.ts"
import type { SiteRow } from "#src/analytics/SiteDirectory.ts"
import { Stats } from "#src/analytics/Stats.ts"
import type { Filters } from "#src/analytics/Filters.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { TestStores } from "#test/stores/TestStores.ts"
import { storedEvent } from "./Events.ts"
import { naiveVisits, type NaiveVisit } from "./NaiveVisits.ts"
import { sinkBatch } from "./SinkBatches.ts"
import { stoppedAt } from "./StoppedClock.ts"

const hour = 3_600_000
const day = 24 * hour

const siteOf = (timezone: string): SiteRow => ({
  id: storedEvent().site,
  userId: "usr_1",
  name: "Example",
  domain: "example.org",
  timezone,
  isPublic: false,
  secretPrefix: "",
  secretHash: "",
  visitorSecret: new Uint8Array(),
  firstEventAt: null,
  createdAt: new Date(0),
  deletedAt: null
})

/** Nothing waits in a log: the tests write to the sink themselves. */
const drained = Layer.succeed(EventDrain, {
  flush: Effect.void,
  stats: () => {
    throw new Error("not asked for here")
  }
})

const stores = Stats.layer.pipe(Layer.provide(drained), Layer.provideMerge(TestStores.layer))

type Visit = NaiveVisit<StoredEvent>

const identityOf = (event: StoredEvent): string => `${event.day}/${event.visitor}`

const visitsOf = (events: ReadonlyArray<StoredEvent>): ReadonlyArray<Visit> =>
  Array.from(Map.groupBy(events, identityOf).values()).flatMap((ofVisitor) => naiveVisits(ofVisitor, ""))

const isGlob = (filter: string, text: string): boolean =>
  new RegExp(`^${filter.replaceAll("*", ".*")}$`, "s").test(text)

const known = (filter: string, text: string): boolean => text === (filter === "(none)" ? "" : filter)

/** Whether a visit passes, by what the decisions say of each filter. */
const passes = (visit: Visit, filters: Filters): boolean => {
  const first = visit.events[0]
  const pages = visit.events.filter(({ kind }) => kind === "pageview").map(({ path }) => path)
  const goals = visit.events.filter(({ kind }) => kind === "event").map(({ name }) => name)
  const has = (filter: string | undefined, texts: ReadonlyArray<string>): boolean =>
    filter === undefined ||
    (filter === "(none)" ? texts.length === 0 : texts.some((text) => isGlob(filter, text)))
  return (
    first !== undefined &&
    (filters.source === undefined || known(filters.source, first.source)) &&
    (filters.country === undefined || known(filters.country.toUpperCase(), first.country)) &&
    (filters.campaign === undefined || known(filters.campaign, first.utmCampaign)) &&
    has(filters.page, pages) &&
    has(filters.event, goals)
  )
}

const rounded = (value: number, decimals: number): number =>
  Number.isFinite(value) ? Math.round(value * 10 ** decimals) / 10 ** decimals : 0

const recount = (all: ReadonlyArray<Visit>, { fromMillis, toMillis }: Range, filters: Filters = {}) => {
  const isIn = (ts: number): boolean => ts >= fromMillis && ts < toMillis
  const onPage = (path: string): boolean =>
    filters.page === undefined || filters.page === "(none)" || isGlob(filters.page, path)
  const visits = all.filter((visit) => passes(visit, filters))
  const hits = visits.flatMap(({ events }) => events).filter(({ path, ts }) => isIn(ts) && onPage(path))
  const pageviews = hits.filter(({ kind }) => kind === "pageview")
  const isPage = filters.page !== undefined && filters.page !== "(none)"
  const started = visits.filter(({ events }) => isIn(Math.min(...events.map(({ ts }) => ts))))
  const bounces = started.filter(({ events }) => events.length === 1 && events[0]?.kind === "pageview")
  const engagedMillis = started.reduce((sum, visit) => sum + visit.engagedMillis, 0)
  return {
    visitors: new Set((isPage ? pageviews : hits).map(identityOf)).size,
    visits: started.length,
    pageviews: pageviews.length,
    events: hits.length - pageviews.length,
    viewsPerVisit: rounded(pageviews.length / started.length, 2),
    bounceRate: rounded((bounces.length * 100) / started.length, 2),
    avgDurationSec: rounded(engagedMillis / 1000 / started.length, 1)
  }
}

/** Whole seconds: a period's end cuts no second in two. Dense around the places where zones change their clocks. */
const eventsBefore = (nowMillis: number): fc.Arbitrary<ReadonlyArray<StoredEvent>> =>
  fc
    .array(
      fc.record({
        age: fc.oneof(
          fc.integer({ min: 0, max: 3 * 3600 }),
          fc.integer({ min: 0, max: 50 * 3600 }),
          fc.integer({ min: 0, max: 70 * 86_400 })
        ),
        kind: fc.constantFrom<StoredEvent["kind"]>("pageview", "pageview", "pageview", "event", "engage"),
        visitor: fc.bigInt({ min: 1n, max: 6n }),
        path: fc.constantFrom("/", "/a", "/a_b", "/axb", "/ä"),
        pv: fc.constantFrom("", "p", "q"),
        name: fc.constantFrom("buy", "say"),
        source: fc.constantFrom("", "Google"),
        country: fc.constantFrom("", "DE", "FR"),
        utmCampaign: fc.constantFrom("", "spring"),
        engagedMillis: fc.integer({ min: 0, max: 600_000 })
      }),
      { minLength: 150, maxLength: 250 }
    )
    .map((found) =>
      found.map(({ age, ...fields }) => {
        const ts = nowMillis - age * 1000
        const isEvent = fields.kind === "event"
        return storedEvent({
          ...fields,
          ts,
          received: ts,
          day: Math.floor(ts / day),
          name: isEvent ? fields.name : "",
          // Known to one visitor on one day: a ping from another identity would count for its page view's.
          pv: isEvent || fields.pv === "" ? "" : `${fields.pv} ${fields.visitor} ${Math.floor(ts / day)}`
        })
      })
    )

/** Now is soon after a change of clocks in each: at midnight in Beirut, by half an hour on Lord Howe. */
const places = [
  ["UTC", "2026-11-20T10:20:30Z"],
  ["Europe/Berlin", "2026-03-29T07:10:00Z"],
  ["America/New_York", "2026-11-01T08:00:00Z"],
  ["Asia/Beirut", "2026-03-29T12:00:00Z"],
  ["Australia/Lord_Howe", "2026-04-05T03:00:00Z"],
  ["Asia/Kathmandu", "2026-11-20T20:00:00Z"]
] as const

const filterCases: ReadonlyArray<Filters> = [
  { source: "Google" },
  { source: "(none)" },
  { country: "de" },
  { campaign: "spring" },
  { event: "buy" },
  { event: "*ay" },
  { event: "(none)" },
  { page: "/a" },
  { page: "/a_b" },
  { page: "/a*" },
  { page: "(none)" },
  { page: "/ä", source: "Google", event: "say" }
]

const fill = Effect.fnUntraced(function* (events: ReadonlyArray<StoredEvent>) {
  const clickhouse = yield* ClickHouse
  yield* clickhouse.command("TRUNCATE TABLE events")
  yield* clickhouse.command("TRUNCATE TABLE visits")
  const sink = yield* EventSink.make()
  const half = Math.floor(events.length / 2)
  yield* sink.write(sinkBatch(events.slice(0, half)))
  yield* sink.write(sinkBatch(events.slice(half), { from: half }))
})

describe("stats", () => {
  layer(stores, { excludeTestServices: true })((it) => {
    for (const [timezone, instant] of places) {
      it.effect(`are in every period what a recount of the events says, in ${timezone}`, () =>
        Effect.gen(function* () {
          const now = Date.parse(instant)
          const stats = yield* Stats
          for (const events of fc.sample(eventsBefore(now), { numRuns: 3, seed: now / 1000 })) {
            yield* fill(events)
            const visits = visitsOf(events)
            for (const period of periods) {
              const found = yield* stats.ofSite(siteOf(timezone), { period }).pipe(stoppedAt(now))
              const range = rangeOf(period, timezone, now)
              const upTo = { ...range, toMillis: now + 1000 }
              assert.deepStrictEqual(found.summary, recount(visits, upTo), period)
              assert.deepStrictEqual(found.previous, recount(visits, range.previous), `before ${period}`)
              const expected = range.buckets.map(({ label, startMillis }, index) => {
                const toMillis = range.buckets[index + 1]?.startMillis ?? now + 1000
                const {
                  pageviews,
                  visitors,
                  visits: started
                } = recount(visits, { fromMillis: startMillis, toMillis })
                return { bucket: label, visitors, visits: started, pageviews }
              })
              assert.deepStrictEqual(found.timeseries, expected, period)
            }
          }
        })
      )
    }

    it.effect("hold on the visits or page views that a filter selects", () =>
      Effect.gen(function* () {
        const now = Date.parse("2026-11-20T10:20:30Z")
        const stats = yield* Stats
        const [events = []] = fc.sample(eventsBefore(now), { numRuns: 1, seed: 5 })
        yield* fill(events)
        const visits = visitsOf(events)
        for (const filters of filterCases) {
          const name = JSON.stringify(filters)
          const found = yield* stats
            .ofSite(siteOf("Europe/Berlin"), { period: "7d", ...filters })
            .pipe(stoppedAt(now))
          const range = rangeOf("7d", "Europe/Berlin", now)
          assert.deepStrictEqual(
            found.summary,
            recount(visits, { ...range, toMillis: now + 1000 }, filters),
            name
          )
          assert.deepStrictEqual(found.previous, recount(visits, range.previous, filters), name)
          assert.deepStrictEqual(found.filters, { ...filters })
          for (const [index, { pageviews, visitors, visits: started }] of found.timeseries.entries()) {
            const fromMillis = range.buckets[index]?.startMillis ?? 0
            const toMillis = range.buckets[index + 1]?.startMillis ?? now + 1000
            const expected = recount(visits, { fromMillis, toMillis }, filters)
            assert.deepStrictEqual(
              [pageviews, visitors, started],
              [expected.pageviews, expected.visitors, expected.visits],
              `${name} ${index}`
            )
          }
        }
      })
    )

    it.effect("of a site without events are zeros, in complete series", () =>
      Effect.gen(function* () {
        const found = yield* (yield* Stats).ofSite({ ...siteOf("UTC"), id: "st_none" }, {})
        assert.strictEqual(found.timeseries.length, 30)
        assert.deepStrictEqual(found.summary, recount([], { fromMillis: 0, toMillis: 1 }))
        assert.isTrue(
          found.timeseries.every(({ pageviews, visitors, visits }) => pageviews + visitors + visits === 0)
        )
      })
    )
  })

  it.effect("fail while what was accepted cannot be made visible, rather than leave it out", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip((yield* Stats).ofSite(siteOf("UTC"), { period: "today" }))
      assert.strictEqual(failed._tag, "SinkUnavailable")
    }).pipe(
      Effect.provide(
        Stats.layer.pipe(
          Layer.provide(
            Layer.effect(
              EventDrain,
              Effect.map(EventDrain, (drain) => ({
                ...drain,
                flush: Effect.fail(new SinkUnavailable({ problem: "away", cause: undefined }))
              }))
            )
          ),
          Layer.provide(drained),
          Layer.provide(TestStores.layer)
        )
      )
    )
  )
})
