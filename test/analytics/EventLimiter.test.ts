import { assert, describe, it } from "@effect/vitest"
import { EventLimiter, type EventLimiterOptions } from "#actors/analytics/EventLimiter.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"

const make = (options?: Partial<EventLimiterOptions>) =>
  new EventLimiter({
    visitorEventsPerMinute: 300,
    siteEventsPerSecond: 6_000,
    visitorsMax: 1_024,
    sitesMax: 100,
    ...options
  })
const refusedFor = (retryAfterSeconds: number) => ({ allowed: false, retryAfterSeconds })
const fine = { allowed: true, retryAfterSeconds: 0 }

describe("browser events", () => {
  it("are 300 within a minute of one visitor", () => {
    const limiter = make()
    for (let n = 0; n < 300; n++) assert.deepStrictEqual(limiter.takeVisitor(7n, 1_000 + n), fine)
    assert.deepStrictEqual(limiter.takeVisitor(7n, 2_000), refusedFor(60))
    assert.deepStrictEqual(limiter.takeVisitor(7n, 60_999), refusedFor(1))
  })

  it("are admitted again after the wait that a refusal named, and hardly before", () => {
    for (const pauses of [
      [0, 0],
      [500, 0],
      [100, 40_000],
      [20_000, 30_000]
    ] as const) {
      const limiter = make({ visitorEventsPerMinute: 10 })
      let now = 5_000
      for (let n = 0; n < 16; n++) {
        limiter.takeVisitor(7n, now)
        now += n === 8 ? pauses[1] : pauses[0]
      }
      const { allowed, retryAfterSeconds } = limiter.takeVisitor(7n, now)
      if (allowed) continue
      assert.isFalse(limiter.takeVisitor(7n, now + (retryAfterSeconds - 1.01) * 1000).allowed)
      assert.isTrue(limiter.takeVisitor(7n, now + retryAfterSeconds * 1000).allowed)
    }
  })

  it("do not double at the turn of a minute", () => {
    const limiter = make()
    let admitted = 0
    for (let now = 31_000; now < 91_000; now += 10) if (limiter.takeVisitor(7n, now).allowed) admitted++
    const random = new SeededRandom(1)
    for (let now = 91_000; now < 151_000; now += random.below(20)) {
      if (limiter.takeVisitor(7n, now).allowed) admitted++
    }
    assert.isAtMost(admitted, 2 * 300 + 1)
    assert.isAtLeast(admitted, 2 * 300 - 5)
  })

  it("are counted for each visitor by itself, all 64 bits of it", () => {
    const limiter = make({ visitorEventsPerMinute: 1 })
    const visitors = [0n, 1n, 1n << 32n, (1n << 64n) - 1n, 1n << 63n]
    for (const visitor of visitors) assert.isTrue(limiter.takeVisitor(visitor, 5).allowed, `${visitor}`)
    for (const visitor of visitors) assert.isFalse(limiter.takeVisitor(visitor, 5).allowed, `${visitor}`)
  })

  it("of more than visitorsMax make the oldest visitor's count forgotten, first one that is over", () => {
    const limiter = make({ visitorEventsPerMinute: 1, visitorsMax: 8 })
    for (let visitor = 0n; visitor < 8n; visitor++) limiter.takeVisitor(visitor, Number(visitor) * 1000)
    assert.isTrue(limiter.takeVisitor(100n, 9_000).allowed)
    assert.strictEqual(limiter.forgotten, 1)
    assert.isFalse(limiter.takeVisitor(1n, 9_000).allowed, "the second oldest is still known")
    assert.isTrue(limiter.takeVisitor(0n, 9_000).allowed, "the oldest was forgotten")
    for (let visitor = 200n; visitor < 208n; visitor++) limiter.takeVisitor(visitor, 70_000)
    assert.strictEqual(limiter.forgotten, 2, "what is over is no loss")
  })
})

describe("collected events", () => {
  it("are 6,000 a second of a site, a batch being taken whole or not at all", () => {
    const limiter = make()
    for (let batch = 0; batch < 59; batch++) assert.deepStrictEqual(limiter.takeSite("st_1", 100, 5), fine)
    assert.deepStrictEqual(limiter.takeSite("st_1", 101, 5), refusedFor(1))
    assert.deepStrictEqual(limiter.takeSite("st_1", 100, 5), fine)
    assert.deepStrictEqual(limiter.takeSite("st_1", 1, 5), refusedFor(1))
    assert.deepStrictEqual(limiter.takeSite("st_2", 100, 5), fine, "another site has its own")
    assert.deepStrictEqual(limiter.takeSite("st_1", 61, 15), refusedFor(1))
    assert.deepStrictEqual(limiter.takeSite("st_1", 60, 15), fine)
  })

  it("of more than sitesMax make the oldest site forgotten", () => {
    const limiter = make({ siteEventsPerSecond: 1, sitesMax: 2 })
    for (const site of ["st_1", "st_2", "st_3"]) limiter.takeSite(site, 1, 5)
    assert.isFalse(limiter.takeSite("st_2", 1, 5).allowed)
    assert.isTrue(limiter.takeSite("st_1", 1, 5).allowed)
  })
})
