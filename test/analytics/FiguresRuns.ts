import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { questionQuery } from "#schemas/analytics/Stats.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { Stats } from "#src/analytics/reads/Stats.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { drained } from "./DrainedLog.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { storedEvent } from "./Events.ts"
import { among, arrivalsOf, eventsFrom, type Random } from "./EventStreams.ts"
import { naiveBreakdown, naiveSummary, visitsOf, type NaiveFilters, type Visit } from "./NaiveFigures.ts"
import { naivePeriod } from "./NaivePeriods.ts"
import {
  dimensions,
  filtersAlone,
  filtersTogether,
  periodsFrom,
  type AskedPeriod,
  type Question
} from "./Questions.ts"
import { sinkBatch, testLogId } from "./SinkBatches.ts"
import { stoppedAt } from "./StoppedClock.ts"

/** A failure names its seed: run that one again with FIGURES_SEED=… FIGURES_RUNS=1. */
const seed = Number(process.env["FIGURES_SEED"] ?? Date.now() % 1_000_000)

const hour = 3_600_000
const dayMillis = 24 * hour

/**
 * Now is soon after a change of clocks, or in the first second of a day, a month or a year. Any four in a row are in
 * three zones with changes at least.
 */
const scenes: ReadonlyArray<readonly [string, string]> = [
  ["Europe/Berlin", "2026-03-29T07:10:00.500Z"],
  ["America/New_York", "2026-11-01T08:00:00Z"],
  // By half an hour.
  ["Australia/Lord_Howe", "2026-04-05T03:00:00.999Z"],
  ["Asia/Kathmandu", "2026-11-20T20:00:00Z"],
  // Midnight is skipped, …
  ["America/Sao_Paulo", "2018-11-04T15:20:00Z"],
  ["Asia/Beirut", "2026-03-29T12:00:00Z"],
  // … and shown twice.
  ["America/Havana", "2026-11-01T09:00:00.250Z"],
  ["UTC", "2026-11-20T10:20:30.123Z"],
  ["Pacific/Chatham", "2026-09-26T19:45:00Z"],
  ["Australia/Lord_Howe", "2026-10-04T00:10:00Z"],
  ["Europe/Berlin", "2026-10-25T05:30:00Z"],
  ["UTC", "2027-01-01T00:00:00.400Z"],
  ["America/New_York", "2026-03-08T16:00:00Z"],
  ["Europe/Lisbon", "2026-05-31T23:00:00Z"]
]

const siteOf = (id: string): SiteRow => ({
  id,
  dataset: id,
  user_id: "usr_1",
  name: "Example",
  domain: "example.org",
  timezone: "UTC",
  public: false,
  secret_hash: "",
  visitorSecret: new Uint8Array(),
  retentionDays: null,
  firstEventAt: null,
  resetAt: null,
  createdAt: new Date(0)
})

const stores = Stats.layer.pipe(Layer.provide(drained), Layer.provideMerge(TestStores.layer))

/** The instants where figures can go wrong: bounds of the queried periods, of buckets, midnights of UTC, now. */
const edgesOf = (
  random: Random,
  periods: ReadonlyArray<AskedPeriod>,
  timeZone: string,
  nowMillis: number
): ReadonlyArray<number> => {
  const ofPeriods = periods.map(({ custom, period }) => {
    const { buckets, current, previous } = naivePeriod(period, timeZone, nowMillis, custom)
    const bounds = [
      current.toMillis,
      previous.fromMillis,
      previous.toMillis,
      among(random, buckets).fromMillis
    ]
    return [current.fromMillis, among(random, bounds)]
  })
  const midnight = Math.floor(nowMillis / dayMillis) * dayMillis
  return [...ofPeriods.flat(), midnight, midnight - dayMillis, nowMillis, nowMillis - 2 * hour]
}

/** Written in a few batches; some of them twice, as after a crash. */
const store = Effect.fnUntraced(function* (
  random: Random,
  arrivals: ReadonlyArray<StoredEvent>,
  from: number
) {
  let sink = yield* EventSink.make()
  const size = Math.ceil(arrivals.length / (2 + Math.floor(random() * 5)))
  for (let at = 0; at < arrivals.length; at += size) {
    const batch = sinkBatch(arrivals.slice(at, at + size), { from: from + at })
    yield* sink.write(batch)
    if (random() < 0.8) continue
    sink = yield* EventSink.make()
    yield* sink.write({ ...batch, recovering: true })
  }
})

/** A site as the recount knows it. */
interface Recounted {
  readonly visits: ReadonlyArray<Visit>
  readonly timeZone: string
  readonly nowMillis: number
}

const expectedStats = ({ nowMillis, timeZone, visits }: Recounted, { custom, filters, period }: Question) => {
  const { buckets, current, granularity, previous } = naivePeriod(period, timeZone, nowMillis, custom)
  return {
    from: new Date(current.fromMillis).toISOString(),
    granularity,
    filters,
    summary: naiveSummary(visits, current, filters),
    previous: naiveSummary(visits, previous, filters),
    timeseries: buckets.map((bucket) => {
      const { pageviews, visitors, visits: started } = naiveSummary(visits, bucket, filters)
      return { bucket: bucket.label, visitors, visits: started, pageviews }
    })
  }
}

const expectedRows = (
  { nowMillis, timeZone, visits }: Recounted,
  { custom, filters, period }: Question,
  dimension: string
) => {
  const { current } = naivePeriod(period, timeZone, nowMillis, custom)
  return naiveBreakdown(visits, current, filters, dimension)
}

/** A question as it comes from an address bar, before a dimension is named. */
const decode = Schema.decodeUnknownSync(Schema.Struct(questionQuery))

interface Asked {
  readonly question: Question
  /** undefined: the stats */
  readonly dimension: string | undefined
  readonly limit: number
}

/** Every period, every filter alone, some together; and every dimension, with and without filters. */
const questionsFrom = (random: Random, periods: ReadonlyArray<AskedPeriod>): ReadonlyArray<Asked> => {
  const ask = (
    filters: NaiveFilters,
    dimension: string | undefined,
    period = among(random, periods)
  ): Asked => ({
    question: { ...period, filters },
    dimension,
    limit: among(random, [1, 5, 500, 500, 500])
  })
  const underFilters = [...filtersAlone(random), ...Array.from({ length: 8 }, () => filtersTogether(random))]
  return [
    // Without filters, stats and pages are counted in a way of their own.
    ...periods.flatMap((period) => [ask({}, undefined, period), ask({}, "page", period)]),
    ...dimensions.map((dimension) => ask({}, dimension)),
    ...underFilters.flatMap((filters) => [ask(filters, undefined), ask(filters, among(random, dimensions))])
  ]
}

/** Asks and compares; how much there was to compare. */
const compare = Effect.fnUntraced(function* (
  site: SiteRow,
  recounted: Recounted,
  { dimension, limit, question }: Asked
) {
  const { timeZone } = recounted
  const asked = `${dimension ?? "stats"} of ${JSON.stringify(question)} in ${timeZone}`
  const query = decode({
    period: question.period,
    ...question.custom,
    ...question.filters,
    timezone: timeZone
  })
  if (dimension === undefined) {
    const answer = yield* (yield* Stats).ofSite(site, query)
    const { filters, from, granularity, previous, summary, timeseries } = answer
    const found = { from, granularity, filters, summary, previous, timeseries }
    assert.deepStrictEqual(found, expectedStats(recounted, question), asked)
    return summary.visits
  }
  const { rows } = yield* (yield* Stats).breakdown(site, { ...query, dimension, limit })
  assert.deepStrictEqual(rows, expectedRows(recounted, question, dimension).slice(0, limit), asked)
  return rows.length
})

/** Recounts the events of so many seeds. */
export const describeFigures = (usual: number): void => {
  const runs = Number(process.env["FIGURES_RUNS"] ?? usual)
  layer(stores, { excludeTestServices: true })((it) => {
    let stored = 0
    for (let run = 0; run < runs; run++) {
      const [timeZone, instant] = scenes[(seed + run) % scenes.length] ?? ["UTC", ""]
      const runSeed = seed + run
      const name = `are what a recount of the events says, in ${timeZone} (FIGURES_SEED=${runSeed})`
      const test = Effect.gen(function* () {
        const random = seededRandom(runSeed)
        const nowMillis = Date.parse(instant)
        const site = siteOf(`st_figures${runSeed}`)
        const periods = periodsFrom(random, nowMillis)
        const edges = edgesOf(random, periods, timeZone, nowMillis)
        const arrivals = arrivalsOf(random, eventsFrom(random, { site: site.id, nowMillis, edges }))
        // The same people on another site.
        const others = arrivals.filter(() => random() < 0.1).map((event) => ({ ...event, site: "st_other" }))
        yield* store(random, [...arrivals, ...others], stored)
        stored += arrivals.length + others.length
        const recounted = { visits: visitsOf(arrivals), timeZone, nowMillis }
        const compared = yield* Effect.forEach(
          questionsFrom(random, periods),
          (asked) => compare(site, recounted, asked),
          { concurrency: 3 }
        ).pipe(stoppedAt(nowMillis))
        // Questions that nothing answers to prove little.
        assert.isAbove(compared.filter((size) => size > 0).length, compared.length / 3)
      })
      it.effect(name, () => test, 600_000)
    }

    it.effect("know the last page of a long visit in which a late event has moved a row", () =>
      Effect.gen(function* () {
        const site = siteOf("st_moved")
        const midnight = Date.UTC(2026, 10, 21)
        const view = (minutes: number, path: string): StoredEvent =>
          storedEvent({ site: site.id, path, ts: midnight + minutes * 60_000 })
        // A visit goes on in a new row with every hour. The late view at 62 minutes begins the second row anew.
        const before = [view(0, "/"), view(20, "/"), view(40, "/"), view(65, "/b")]
        const after = [view(62, "/a"), view(80, "/c")]
        const sink = yield* EventSink.make()
        const logId = testLogId + 1n
        yield* sink.write(sinkBatch(before, { logId }))
        yield* sink.write(sinkBatch(after, { logId, from: before.length }))
        const nowMillis = midnight + 12 * hour
        const recounted = { visits: visitsOf([...before, ...after]), timeZone: "UTC", nowMillis }
        const ask = (filters: NaiveFilters, dimension: string | undefined) =>
          compare(site, recounted, { question: { period: "today", filters }, dimension, limit: 10 })
        assert.strictEqual(yield* ask({}, "exit").pipe(stoppedAt(nowMillis)), 1)
        assert.strictEqual(yield* ask({ exit: "/c" }, undefined).pipe(stoppedAt(nowMillis)), 1)
        assert.strictEqual(yield* ask({ exit: "/b" }, undefined).pipe(stoppedAt(nowMillis)), 0)
      })
    )
  })
}
