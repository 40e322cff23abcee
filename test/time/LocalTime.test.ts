import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  firstInstant,
  localTime,
  nextHour,
  offsetMillis,
  spanAt,
  startOfDay
} from "#streams/time/LocalTime.ts"

const at = (iso: string): number => Date.parse(iso)
const iso = (millis: number): string => new Date(millis).toISOString()

const zones = fc.constantFrom(...Intl.supportedValuesOf("timeZone"))
const instants = fc.integer({ min: at("2020-01-01T00:00:00Z"), max: at("2037-12-31T00:00:00Z") })

describe("local time", () => {
  it("has spans that end where the offset changes, to the millisecond", () => {
    // Casablanca goes back an hour for Ramadan, Lord Howe forward by half an hour, Havana back to midnight.
    for (const [zone, change] of [
      ["Africa/Casablanca", "2026-02-15T02:00:00Z"],
      ["Australia/Lord_Howe", "2026-10-03T15:30:00Z"],
      ["America/Havana", "2026-11-01T05:00:00Z"]
    ] as const) {
      const before = spanAt(zone, at(change) - 1)
      const after = spanAt(zone, at(change))
      assert.strictEqual(iso(before.toMillis), iso(at(change)), zone)
      assert.deepStrictEqual(after.fromMillis, before.toMillis)
      assert.notStrictEqual(after.offset, before.offset)
    }
  })

  it("has the offset of each instant that Intl has, in any zone", () => {
    fc.assert(
      fc.property(zones, instants, (zone, instant) => {
        const { fromMillis, offset, toMillis } = spanAt(zone, instant)
        assert.isTrue(fromMillis <= instant && instant < toMillis)
        assert.strictEqual(offset, offsetMillis(zone, instant))
        assert.strictEqual(spanAt(zone.toUpperCase(), instant).offset, offset)
      }),
      { numRuns: 500 }
    )
  })

  it("finds a local time that is skipped at the change, and of a repeated one the first", () => {
    const berlin = (...local: Parameters<typeof Date.UTC>): string =>
      iso(firstInstant("Europe/Berlin", Date.UTC(...local)))
    assert.strictEqual(berlin(2026, 2, 29, 2, 30), "2026-03-29T01:00:00.000Z")
    assert.strictEqual(berlin(2026, 9, 25, 2, 30), "2026-10-25T00:30:00.000Z")
    assert.strictEqual(berlin(2026, 9, 25, 3, 0), "2026-10-25T02:00:00.000Z")
    assert.strictEqual(
      iso(firstInstant("Pacific/Apia", Date.UTC(2011, 11, 30, 9))),
      "2011-12-30T10:00:00.000Z"
    )
  })

  it("finds the next full hour strictly after an instant", () => {
    assert.strictEqual(iso(nextHour("UTC", at("2026-11-20T10:00:00Z"))), "2026-11-20T11:00:00.000Z")
    assert.strictEqual(iso(nextHour("UTC", at("2026-11-20T09:59:59.999Z"))), "2026-11-20T10:00:00.000Z")
    assert.strictEqual(
      iso(nextHour("Asia/Kathmandu", at("2026-11-20T10:20:00Z"))),
      "2026-11-20T11:15:00.000Z"
    )
  })

  it("starts a day at its first instant: just before it is another day", () => {
    fc.assert(
      fc.property(zones, instants, (zone, now) => {
        const today = localTime(zone, now)
        const start = startOfDay(zone, today)
        assert.strictEqual(localTime(zone, start).day, today.day)
        assert.notStrictEqual(localTime(zone, start - 1000).day, today.day)
        assert.isTrue(start <= now)
        assert.strictEqual((start + offsetMillis(zone, start)) % 60_000, 0)
      }),
      { numRuns: 500 }
    )
  })

  it("refuses zones that Intl does not know, and instants that are none", () => {
    assert.throws(() => spanAt("Mars/Olympus", 0), RangeError)
    assert.throws(() => spanAt("UTC", Number.NaN), RangeError)
    assert.throws(() => firstInstant("UTC", Number.POSITIVE_INFINITY), RangeError)
  })
})
