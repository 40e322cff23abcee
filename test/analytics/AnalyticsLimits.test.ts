import * as fs from "node:fs"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { breakdownLimit } from "#schemas/analytics/Breakdown.ts"
import { eventLimits } from "#schemas/analytics/EventLimits.ts"
import { importLinesMax } from "#schemas/analytics/ImportApi.ts"
import { EventIds } from "#src/analytics/ingest/EventIds.ts"
import { EventLog, eventLogConsumers } from "#src/analytics/ingest/EventLog.ts"
import { EventRates } from "#src/analytics/ingest/EventRates.ts"
import { hashOfId, idMemoryMillis } from "#src/analytics/ingest/IdIndex.ts"
import { Realtime } from "#src/analytics/reads/Realtime.ts"
import { AppConfig } from "#src/Config.ts"
import { limits, type Limits } from "#src/Limits.ts"
import { eventAgeMaxMillis } from "#streams/analytics/EventTime.ts"
import { engageWithinMillis, visitGapMillis } from "#streams/analytics/Visits.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { temporaryDirectory } from "#test/kernel/streams/TemporaryLog.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { noon } from "./Senders.ts"

const hour = 3_600_000

/**
 * The effect of a limit is tested with its code; that the process is given these numbers, and uses them, is tested
 * here.
 */
describe("the limits of analytics", () => {
  it("are those of the contract", () => {
    const { collectEvents, nameLength, propKeys, propValueLength } = eventLimits
    assert.deepStrictEqual(
      { collectEvents, nameLength, propKeys, propValueLength },
      { collectEvents: 100, nameLength: 120, propKeys: 30, propValueLength: 256 }
    )
    assert.strictEqual(limits.collectEvents, eventLimits.collectEvents, "said and held")
    assert.strictEqual(eventAgeMaxMillis, 7 * 24 * hour)
    assert.strictEqual(visitGapMillis, hour / 2)
    assert.deepStrictEqual(breakdownLimit, { default: 10, max: 500 })
  })

  it("are those of the decisions (Analytics)", () => {
    assert.strictEqual(limits.eventBodyBytes, 64 * 1024)
    assert.strictEqual(limits.collectBodyBytes, 8 * 1024 * 1024)
    assert.strictEqual(eventLimits.idLength, 64)
    assert.deepStrictEqual([limits.eventIdsPerSite, idMemoryMillis], [10_000_000, 24 * hour])
    assert.strictEqual(engageWithinMillis, 24 * hour)
    assert.deepStrictEqual([limits.visitorEventsPerMinute, limits.siteEventsPerSecond], [300, 6_000])
    assert.strictEqual(limits.addressEventsPerMinute, 3_000)
    assert.strictEqual(1_000 / limits.readFlushMillis, 4, "flushes a second, at most")
    assert.strictEqual(importLinesMax, 10_000)
  })
})

const ratesWith = (changed: Partial<Limits>) =>
  EventRates.pipe(Effect.provide(Layer.provide(EventRates.layer, AppConfig.layerOf({ limits: changed }))))

describe("the rates of events", () => {
  it.effect("are 3,000 browser events of an address on a site, of IPv6 of a /64, each by itself", () =>
    Effect.gen(function* () {
      const rates = yield* ratesWith({})
      const admitted = (site: string, address: (index: number) => string, times = 3_100) =>
        Array.from({ length: times }, (_, index) => rates.takeAddress(site, address(index)).allowed).filter(
          Boolean
        ).length
      assert.strictEqual(
        admitted("st_1", () => "203.0.113.7"),
        3_000
      )
      assert.isAtLeast(rates.takeAddress("st_1", "203.0.113.7").retryAfterSeconds, 1)
      assert.strictEqual(
        admitted("st_2", () => "203.0.113.7", 10),
        10
      )
      assert.strictEqual(
        admitted("st_1", (index) => `2001:db8:1:2::${index.toString(16)}`),
        3_000
      )
      assert.strictEqual(
        admitted("st_1", (index) => `2001:db8::${index.toString(16)}`),
        3_000
      )
      const others = (index: number) => `10.1.${index >> 8}.${index & 255}`
      assert.strictEqual(admitted("st_1", others, 10_000), 10_000)
    })
  )

  it.effect("are 300 browser events of a visitor at once, and 6,000 collected events of a site", () =>
    Effect.gen(function* () {
      const rates = yield* ratesWith({})
      const admitted = Array.from({ length: 310 }, () => rates.takeVisitor("st_1", 7n).allowed)
      assert.strictEqual(admitted.filter(Boolean).length, 300)
      assert.isTrue(rates.takeCollect("st_1", 6_000).allowed)
      assert.isFalse(rates.takeCollect("st_1", 6_000).allowed)
    })
  )

  it.effect("are counted for limitedVisitors and limitedSites; beyond them the oldest is forgotten", () =>
    Effect.gen(function* () {
      const rates = yield* ratesWith({
        visitorEventsPerMinute: 1,
        siteEventsPerSecond: 1,
        limitedVisitors: 8,
        limitedSites: 2
      })
      const first = rates.takeVisitor("st_1", 0n)
      for (let visitor = 1n; visitor < 8n; visitor++) rates.takeVisitor("st_1", visitor)
      assert.deepStrictEqual([first.allowed, rates.takeVisitor("st_1", 0n).allowed], [true, false])
      for (let visitor = 8n; visitor < 16n; visitor++) rates.takeVisitor("st_1", visitor)
      assert.isTrue(rates.takeVisitor("st_1", 0n).allowed, "forgotten")
      for (const site of ["st_1", "st_2", "st_3"]) rates.takeCollect(site, 1)
      assert.isFalse(rates.takeCollect("st_3", 1).allowed)
      assert.isTrue(rates.takeCollect("st_1", 1).allowed, "forgotten")
    })
  )
})

const openLog = Effect.flatMap(temporaryDirectory, (directory) =>
  DurableLog.open({ directory, consumers: Object.values(eventLogConsumers) })
)

describe("the ids of events", () => {
  it.effect("are kept for eventIdsPerSite of them, in files of eventIdSitesOpen sites at once", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporaryDirectory
      const config = AppConfig.layerOf({ dataDir, limits: { eventIdsPerSite: 8_192, eventIdSitesOpen: 2 } })
      const log = Layer.effect(EventLog, openLog)
      const context = yield* Layer.build(EventIds.layer.pipe(Layer.provide(log), Layer.provide(config)))
      const ids = Effect.runSync(Effect.provide(EventIds, context))
      const store = (site: string, from: number, to: number): void => {
        const hashes = Array.from({ length: to - from }, (_, index) => hashOfId(`id ${from + index}`))
        ids.begin(site, hashes, noon).settle(true)
      }
      for (let from = 0; from < 20_000; from += 1_000) store("st_1", from, from + 1_000)
      assert.strictEqual(ids.look("st_1", hashOfId("id 19999"), noon), "stored")
      assert.strictEqual(ids.look("st_1", hashOfId("id 0"), noon), "new", "forgotten first")
      for (let site = 1; site <= 10; site++) store(`st_${site}`, 0, 1)
      const files = fs.readdirSync("/proc/self/fd").map((file) => `/proc/self/fd/${file}`)
      // Not the one that listed them, which is closed again.
      const paths = files.filter((file) => fs.existsSync(file)).map((file) => fs.readlinkSync(file, "utf8"))
      const open = paths
        .filter((path) => path.startsWith(dataDir))
        .map((path) => /\/(st_\d+)\//.exec(path)?.[1])
      assert.deepStrictEqual([...new Set(open)].sort(), ["st_10", "st_9"])
    })
  )
})

layer(TestStores.layerWith({ limits: { realtimeSites: 2, realtimePresences: 10 } }), {
  excludeTestServices: true
})("realtime figures", (it) => {
  it.effect("are kept for realtimeSites, and for realtimePresences of visitors on pages", () =>
    Effect.gen(function* () {
      const log = Layer.effect(EventLog, openLog)
      const context = yield* Layer.build(Realtime.layer.pipe(Layer.provide(log)))
      const ring = Effect.runSync(Effect.provide(Realtime, context))
      for (let site = 1; site <= 3; site++) {
        const view = { site: `st_${site}`, kind: "pageview", ts: noon + site, path: "/" } as const
        for (let visitor = 0n; visitor < 20n; visitor++) ring.add({ ...view, visitor }, noon + site)
      }
      assert.deepStrictEqual(ring.stats(), { sites: 2, presences: 10 })
      assert.strictEqual(ring.snapshot("st_3", noon + 3).pageviews, 20)
      assert.strictEqual(ring.snapshot("st_1", noon + 3).pageviews, 0, "forgotten")
    })
  )
})
