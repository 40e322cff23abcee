import { assert, describe, it } from "@effect/vitest"
import { pack } from "#streams/analytics/VisitEvent.ts"
import { ResidentDays } from "#streams/analytics/ResidentDays.ts"
import { VisitorDay } from "#streams/analytics/Visits.ts"
import { visitEvent } from "./VisitEvents.ts"

const hour = 3_600_000
const limits = { bytesMax: 1_000_000, generationMillis: hour / 2 }
const key = (visitor: number) => ({ site: "st_1", day: 20_000, visitor: BigInt(visitor) })

/** A visitor-day with so many page views. */
const dayOf = (views: number): VisitorDay => {
  const day = new VisitorDay()
  for (let view = 0; view < views; view++) {
    day.push(visitEvent(view / 100, { path: pack(`/${view}`), pv: pack(`pv${view}`) }))
  }
  return day
}

describe("visitor-days in memory", () => {
  it("stay within two generations' bytes, however many visitors come once", () => {
    const resident = new ResidentDays(limits, 0)
    const { bytes } = dayOf(1)
    const most = 2 * Math.ceil(limits.bytesMax / bytes)
    for (let visitor = 0; visitor < 20_000; visitor++) {
      resident.set(key(visitor), dayOf(1))
      assert.isAtMost(resident.size, most)
    }
    assert.isAbove(resident.size, most / 3)
    assert.isDefined(resident.get(key(19_999)))
    assert.isUndefined(resident.get(key(0)))
  })

  it("count as large as they have grown, not as they were when they came", () => {
    const resident = new ResidentDays(limits, 0)
    const grown = Array.from({ length: 200 }, (_, visitor) => {
      const day = dayOf(1)
      resident.set(key(visitor), day)
      return day
    })
    assert.strictEqual(resident.size, 200)
    for (const [visitor, day] of grown.entries()) {
      for (let view = 1; view < 200; view++) {
        day.push(visitEvent(view / 100, { path: pack(`/${view}`), pv: pack(`pv${view}`) }))
      }
      resident.set(key(visitor), day)
    }
    assert.isAtMost(resident.size, 2 * Math.ceil(limits.bytesMax / (grown[0]?.bytes ?? 1)))
  })

  it("stay while they are touched, and go after one to two generations without", () => {
    const resident = new ResidentDays(limits, 0)
    const [often, once] = [dayOf(1), dayOf(1)]
    resident.set(key(1), often)
    resident.set(key(2), once)
    for (let atMillis = 0; atMillis <= 2 * hour; atMillis += hour / 4) {
      resident.age(atMillis)
      assert.strictEqual(resident.get(key(1)), often)
      resident.set(key(1), often)
      if (atMillis < hour / 2) assert.strictEqual(resident.get(key(2)), once)
    }
    assert.isUndefined(resident.get(key(2)))
    assert.strictEqual(resident.size, 1)
  })

  it("can be forgotten, which makes room", () => {
    const resident = new ResidentDays(limits, 0)
    for (let visitor = 0; visitor < 20_000; visitor++) {
      resident.set(key(visitor), dayOf(1))
      if (visitor > 0) resident.forget(key(visitor))
    }
    assert.isDefined(resident.get(key(0)))
    assert.strictEqual(resident.size, 1)
  })
})
