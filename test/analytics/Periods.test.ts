import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type PeriodRange, periods, rangeOf, rangeOfDates } from "#streams/analytics/Periods.ts"
import { type NaivePeriod, naivePeriod } from "./NaivePeriods.ts"

const at = (iso: string): number => Date.parse(iso)
const iso = (millis: number): string => new Date(millis).toISOString()
const labels = (...args: Parameters<typeof rangeOf>): ReadonlyArray<string> =>
  rangeOf(...args).buckets.map(({ label }) => label)

/** Clocks change by an hour or half of it, at night or at midnight, which is then skipped or shown twice. */
const afterChanges = [
  ["Europe/Berlin", "2026-03-29T07:10:00Z"],
  ["Europe/Berlin", "2026-10-25T05:30:00Z"],
  ["America/New_York", "2026-11-01T08:00:00Z"],
  ["Australia/Lord_Howe", "2026-04-05T03:00:00Z"],
  ["Australia/Lord_Howe", "2026-10-04T00:10:00Z"],
  ["America/Sao_Paulo", "2018-11-04T15:20:00Z"],
  ["America/Sao_Paulo", "2018-02-18T05:00:00Z"],
  ["America/Havana", "2026-11-01T05:30:00Z"],
  ["Asia/Beirut", "2026-03-29T12:00:00Z"],
  ["Pacific/Chatham", "2026-09-26T19:45:00Z"],
  ["Asia/Kathmandu", "2026-11-20T20:00:00Z"]
] as const

const assertSame = (found: PeriodRange, expected: NaivePeriod, name: string): void => {
  assert.strictEqual(found.granularity, expected.granularity, name)
  assert.strictEqual(found.fromMillis, expected.current.fromMillis, name)
  assert.strictEqual(found.previous.fromMillis, expected.previous.fromMillis, name)
  assert.deepStrictEqual(
    found.buckets.map(({ label, startMillis }) => [label, startMillis]),
    expected.buckets.map(({ fromMillis, label }) => [label, fromMillis]),
    name
  )
}

const days = 86_400_000

const localDate = (date: string) => {
  const [year = 0, month = 0, day = 0] = date.split("-").map(Number)
  return { year, month, day }
}

/** Custom periods of dates, which begin some days before now. */
const customRange = (from: string, to: string, zone: string, now: number): PeriodRange => {
  const range = rangeOfDates(localDate(from), localDate(to), zone, now)
  if (range === undefined) throw new Error(`${from} has not begun in ${zone}`)
  return range
}

describe("rangeOfDates", () => {
  const now = at("2026-11-20T10:20:30Z")
  const starts = (from: string, to: string): ReadonlyArray<string> =>
    customRange(from, to, "Europe/Berlin", now).buckets.map(({ label }) => label.slice(0, 16))

  it("ends with the last day, in hours, days or months by its length", () => {
    const day = customRange("2026-10-25", "2026-10-25", "Europe/Berlin", now)
    assert.strictEqual(day.buckets.length, 25)
    assert.isTrue(day.isOver)
    assert.strictEqual(iso(day.toMillis), "2026-10-25T23:00:00.000Z")
    assert.deepStrictEqual(starts("2026-10-01", "2026-10-02"), ["2026-10-01T00:00", "2026-10-02T00:00"])
    assert.strictEqual(starts("2026-01-01", "2026-04-02").length, 92)
    assert.deepStrictEqual(starts("2026-01-31", "2026-05-03"), [
      "2026-01-31T00:00",
      "2026-02-01T00:00",
      "2026-03-01T00:00",
      "2026-04-01T00:00",
      "2026-05-01T00:00"
    ])
  })

  it("ends now where it reaches into the future, and is nothing where it has not begun", () => {
    const range = customRange("2026-11-19", "2026-12-24", "Europe/Berlin", now)
    assert.isFalse(range.isOver)
    assert.strictEqual(range.toMillis, now)
    assert.strictEqual(range.buckets.length, 2)
    assert.isUndefined(rangeOfDates(localDate("2026-11-21"), localDate("2026-12-24"), "Europe/Berlin", now))
  })

  it("has no bucket for a date that a calendar skips", () => {
    const range = customRange("2011-12-28", "2012-01-01", "Pacific/Apia", now)
    assert.deepStrictEqual(
      range.buckets.map(({ label }) => label.slice(0, 10)),
      ["2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01"]
    )
  })

  it("is what a look at the clock on the wall every quarter of an hour says, around changes of clocks", () => {
    for (const [zone, instant] of [...afterChanges, ["Pacific/Apia", "2012-01-01T12:00:00Z"] as const]) {
      for (const [first, last] of [
        [0, 0],
        [1, 1],
        [3, -2],
        [40, 1],
        [93, 2],
        [400, -1]
      ] as const) {
        const [from, to] = [first, last].map((ago) => iso(at(instant) - ago * days).slice(0, 10))
        if (from === undefined || to === undefined) continue
        const range = customRange(from, to, zone, at(instant))
        assertSame(range, naivePeriod("custom", zone, at(instant), { from, to }), `${zone} ${from} ${to}`)
      }
    }
  })
})

describe("rangeOf", () => {
  it("takes today from local midnight to now, in hours", () => {
    const range = rangeOf("today", "Europe/Berlin", at("2026-11-20T10:20:30Z"))
    assert.strictEqual(iso(range.fromMillis), "2026-11-19T23:00:00.000Z")
    assert.strictEqual(range.granularity, "hour")
    assert.strictEqual(range.buckets.length, 12)
    assert.strictEqual(range.buckets[0]?.label, "2026-11-20T00:00:00+01:00")
    assert.strictEqual(range.buckets.at(-1)?.label, "2026-11-20T11:00:00+01:00")
    assert.strictEqual(iso(range.previous.fromMillis), "2026-11-18T23:00:00.000Z")
    assert.strictEqual(iso(range.previous.toMillis), "2026-11-19T10:20:30.000Z")
  })

  it("takes 24h as the last 24 clock hours, the current one included", () => {
    const range = rangeOf("24h", "UTC", at("2026-11-20T10:20:30Z"))
    assert.strictEqual(iso(range.fromMillis), "2026-11-19T11:00:00.000Z")
    assert.strictEqual(range.buckets.length, 24)
    assert.strictEqual(range.buckets.at(-1)?.label, "2026-11-20T10:00:00+00:00")
    assert.strictEqual(iso(range.previous.fromMillis), "2026-11-18T11:00:00.000Z")
  })

  it("takes 7d, 30d and 90d as whole local days ending today", () => {
    for (const [period, days] of [
      ["7d", 7],
      ["30d", 30],
      ["90d", 90]
    ] as const) {
      const range = rangeOf(period, "America/New_York", at("2026-11-20T03:00:00Z"))
      assert.strictEqual(range.buckets.length, days)
      assert.strictEqual(range.buckets.at(-1)?.label, "2026-11-19T00:00:00-05:00")
      assert.strictEqual(range.granularity, "day")
    }
  })

  it("takes 12mo as whole local months ending this month", () => {
    const found = labels("12mo", "Asia/Kolkata", at("2026-02-28T20:00:00Z"))
    assert.strictEqual(found.length, 12)
    assert.strictEqual(found[0], "2025-04-01T00:00:00+05:30")
    assert.strictEqual(found.at(-1), "2026-03-01T00:00:00+05:30")
  })

  it("compares with the same elapsed length one period earlier, never with the period itself", () => {
    const range = rangeOf("12mo", "UTC", at("2028-12-31T23:59:59Z"))
    assert.strictEqual(iso(range.previous.fromMillis), "2027-01-01T00:00:00.000Z")
    assert.strictEqual(range.previous.toMillis, range.fromMillis)
  })

  it("skips the hour that does not exist and repeats the one that comes twice", () => {
    const spring = labels("today", "Europe/Berlin", at("2026-03-29T04:30:00Z"))
    assert.deepStrictEqual(spring.slice(1, 3), ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"])
    const autumn = labels("today", "Europe/Berlin", at("2026-10-25T04:30:00Z"))
    assert.deepStrictEqual(autumn.slice(2, 4), ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"])
  })

  it("begins a day whose midnight is skipped at the clock change", () => {
    // Cairo goes from 00:00 to 01:00 on the last Friday of April.
    const found = labels("7d", "Africa/Cairo", at("2026-04-25T12:00:00Z"))
    assert.deepStrictEqual(found.slice(-2), ["2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"])
  })

  it("keeps to wall-clock hours in zones of 30 and 45 minutes, and where the change itself is 30 minutes", () => {
    assert.strictEqual(
      labels("24h", "Asia/Kathmandu", at("2026-11-20T10:20:00Z")).at(-1),
      "2026-11-20T16:00:00+05:45"
    )
    // Lord Howe goes back by half an hour, from +11:00 to +10:30, on the first Sunday of April at 02:00.
    const found = labels("today", "Australia/Lord_Howe", at("2026-04-05T03:00:00Z"))
    assert.deepStrictEqual(found.slice(0, 4), [
      "2026-04-05T00:00:00+11:00",
      "2026-04-05T01:00:00+11:00",
      "2026-04-05T02:00:00+10:30",
      "2026-04-05T03:00:00+10:30"
    ])
  })

  it("gives one bucket in the first instant of a period", () => {
    assert.deepStrictEqual(labels("today", "UTC", at("2026-11-20T00:00:00Z")), ["2026-11-20T00:00:00+00:00"])
  })

  it("gives the present instant a bucket when one begins with it", () => {
    assert.strictEqual(labels("today", "UTC", at("2026-11-20T08:00:00Z")).at(-1), "2026-11-20T08:00:00+00:00")
    assert.strictEqual(labels("7d", "UTC", at("2026-11-20T00:00:00Z")).length, 7)
    assert.strictEqual(labels("12mo", "UTC", at("2026-11-01T00:00:00Z")).length, 12)
  })

  it("is what a look at the clock on the wall every quarter of an hour says, soon after clocks changed", () => {
    for (const [zone, instant] of afterChanges) {
      for (const now of [at(instant), at(instant) + 40 * 3_600_000 + 123]) {
        for (const period of periods) {
          assertSame(
            rangeOf(period, zone, now),
            naivePeriod(period, zone, now),
            `${period} ${zone} ${iso(now)}`
          )
        }
      }
    }
  })

  const zones = fc.constantFrom(...Intl.supportedValuesOf("timeZone"))
  const instants = fc.integer({ min: at("2020-01-01T00:00:00Z"), max: at("2037-12-31T00:00:00Z") })

  it("has buckets in order, without gaps, that cover the period, for any zone and instant", () => {
    fc.assert(
      fc.property(fc.constantFrom(...periods), zones, instants, (period, zone, now) => {
        const range = rangeOf(period, zone, now)
        const starts = range.buckets.map(({ startMillis }) => startMillis)
        assert.strictEqual(starts[0], range.fromMillis)
        assert.isTrue((starts.at(-1) ?? Infinity) <= now)
        assert.isTrue(starts.every((start, index) => index === 0 || start > (starts[index - 1] ?? 0)))
        assert.isTrue(range.previous.fromMillis < range.previous.toMillis || range.fromMillis === now)
        assert.isTrue(range.previous.toMillis <= range.fromMillis)
        // Labels name the instant of their bucket.
        for (const { label, startMillis } of range.buckets) assert.strictEqual(Date.parse(label), startMillis)
      }),
      { numRuns: 300 }
    )
  })
})
