import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  dueOf,
  type HoldSettings,
  holdSpanAt,
  quietUntil,
  readSchedule
} from "#streams/notify/digests/Due.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { naiveDueOf } from "./NaiveDue.ts"

const at = (iso: string): number => Date.parse(iso)
const iso = (millis: number | undefined): string | undefined =>
  millis === undefined ? undefined : new Date(millis).toISOString().replace(":00.000Z", "Z")

const instant: HoldSettings = {
  delivery: "instant",
  digestAt: null,
  quietFrom: null,
  quietTo: null,
  timezone: "Europe/Berlin"
}
const hourly: HoldSettings = { ...instant, delivery: "hourly" }
const daily: HoldSettings = { ...instant, delivery: "daily" }
const due = (settings: HoldSettings, now: string): string | undefined => iso(dueOf(settings, at(now)))

describe("dueOf", () => {
  it("sends at once what is instant and not in quiet hours", () => {
    assert.isUndefined(due(instant, "2026-11-20T10:20:30Z"))
    assert.isUndefined(due({ ...instant, quietFrom: "22:00", quietTo: "07:00" }, "2026-11-20T10:20:30Z"))
  })

  it("makes hourly digests at :00, after now", () => {
    assert.strictEqual(due(hourly, "2026-11-20T10:20:30Z"), "2026-11-20T11:00Z")
    assert.strictEqual(due(hourly, "2026-11-20T10:00:00Z"), "2026-11-20T11:00Z")
    assert.strictEqual(due(hourly, "2026-11-20T10:59:59.999Z"), "2026-11-20T11:00Z")
    const kathmandu = { ...hourly, timezone: "Asia/Kathmandu" }
    assert.strictEqual(due(kathmandu, "2026-11-20T10:20:30Z"), "2026-11-20T11:15Z")
  })

  it("makes hourly digests at what the clock shows where it changes by half an hour", () => {
    const lordHowe = { ...hourly, timezone: "Australia/Lord_Howe" }
    // 02:00 becomes 02:30 in October, 01:30 in April.
    assert.strictEqual(due(lordHowe, "2026-10-03T14:30:00Z"), "2026-10-03T16:00Z")
    assert.strictEqual(due(lordHowe, "2026-04-04T14:00:00Z"), "2026-04-04T15:30Z")
  })

  it("makes daily digests at the local time, at 09:00 where none is set", () => {
    assert.strictEqual(due(daily, "2026-11-20T07:59:59.999Z"), "2026-11-20T08:00Z")
    assert.strictEqual(due(daily, "2026-11-20T08:00:00Z"), "2026-11-21T08:00Z")
    assert.strictEqual(due({ ...daily, digestAt: "18:45" }, "2026-07-20T10:00:00Z"), "2026-07-20T16:45Z")
  })

  it("makes a daily digest at the first instant after a time that the clock skips", () => {
    const night = { ...daily, digestAt: "02:30" }
    assert.strictEqual(due(night, "2026-03-28T12:00:00Z"), "2026-03-29T01:00Z")
    assert.strictEqual(due(night, "2026-03-29T01:00:00Z"), "2026-03-30T00:30Z")
    const midnight = { ...daily, digestAt: "00:15", timezone: "America/Sao_Paulo" }
    assert.strictEqual(due(midnight, "2018-11-03T12:00:00Z"), "2018-11-04T03:00Z")
  })

  it("makes a daily digest once where the clock shows its time twice, the first time", () => {
    const night = { ...daily, digestAt: "02:30" }
    assert.strictEqual(due(night, "2026-10-24T12:00:00Z"), "2026-10-25T00:30Z")
    assert.strictEqual(due(night, "2026-10-25T00:30:00Z"), "2026-10-26T01:30Z")
    assert.strictEqual(due(night, "2026-10-25T01:10:00Z"), "2026-10-26T01:30Z")
    // The clock went back from 00:01 to 23:01 of the day before.
    const midnight = { ...daily, digestAt: "00:00", timezone: "America/St_Johns" }
    assert.strictEqual(due(midnight, "2010-11-07T02:31:00Z"), "2010-11-08T03:30Z")
  })

  it("holds to the end of quiet hours, also over midnight", () => {
    const night = { quietFrom: "22:00", quietTo: "07:00" }
    assert.strictEqual(due({ ...instant, ...night }, "2026-11-20T21:00:00Z"), "2026-11-21T06:00Z")
    assert.strictEqual(due({ ...instant, ...night }, "2026-11-21T05:59:59.999Z"), "2026-11-21T06:00Z")
    assert.isUndefined(due({ ...instant, ...night }, "2026-11-21T06:00:00Z"))
    assert.strictEqual(due({ ...hourly, ...night }, "2026-11-20T20:20:00Z"), "2026-11-21T06:00Z")
    assert.strictEqual(due({ ...hourly, ...night }, "2026-11-20T19:20:00Z"), "2026-11-20T20:00Z")
    const lunch = { quietFrom: "12:00", quietTo: "14:00", digestAt: "13:00" }
    assert.strictEqual(due({ ...daily, ...lunch }, "2026-11-20T10:00:00Z"), "2026-11-20T13:00Z")
  })

  it("has no quiet hours from a time to the same, nor with one end alone", () => {
    const now = "2026-11-20T21:00:00Z"
    assert.isUndefined(due({ ...instant, quietFrom: "22:00", quietTo: "22:00" }, now))
    assert.isUndefined(due({ ...instant, quietFrom: "21:00" }, now))
    assert.isUndefined(due({ ...instant, quietTo: "23:00" }, now))
  })

  it("ends quiet hours when the clock skips their end, and begins them again when it shows them twice", () => {
    const early = { ...instant, quietFrom: "01:00", quietTo: "02:30" }
    assert.strictEqual(due(early, "2026-03-29T00:30:00Z"), "2026-03-29T01:00Z")
    assert.strictEqual(due(early, "2026-10-25T00:10:00Z"), "2026-10-25T00:30Z")
    assert.isUndefined(due(early, "2026-10-25T00:45:00Z"))
    assert.strictEqual(due(early, "2026-10-25T01:10:00Z"), "2026-10-25T01:30Z")
    // All of the day but a minute, which is skipped.
    const always = { ...instant, quietFrom: "02:31", quietTo: "02:30" }
    assert.strictEqual(due(always, "2026-03-28T12:00:00Z"), "2026-03-30T00:30Z")
  })

  it("tells the end of quiet hours whatever comes in digests, and none outside of them", () => {
    const night = { ...daily, quietFrom: "22:00", quietTo: "07:00" }
    const end = (now: string) => iso(quietUntil(night, at(now)))
    assert.strictEqual(end("2026-11-20T21:00:00Z"), "2026-11-21T06:00Z")
    assert.strictEqual(end("2026-11-21T05:59:59.999Z"), "2026-11-21T06:00Z")
    assert.isUndefined(end("2026-11-21T06:00:00Z"))
    assert.isUndefined(end("2026-11-20T20:59:59.999Z"))
    assert.isUndefined(quietUntil(daily, at("2026-11-20T21:00:00Z")))
  })

  it("takes an instant to the microsecond", () => {
    const night = { ...instant, quietFrom: "22:00", quietTo: "07:00" }
    const now = at("2026-11-20T21:59:59.999Z") + 0.7
    assert.strictEqual(iso(dueOf(hourly, now)), "2026-11-20T22:00Z")
    assert.strictEqual(iso(dueOf(hourly, now + 1)), "2026-11-20T23:00Z")
    assert.strictEqual(iso(dueOf(night, now)), "2026-11-21T06:00Z")
  })

  it("refuses times and zones that are none", () => {
    for (const digestAt of ["24:00", "9:00", "09:60", "09:00:00", "", "NaN"])
      assert.throws(() => dueOf({ ...daily, digestAt }, 0), RangeError)
    assert.throws(() => dueOf({ ...instant, quietFrom: "22:00", quietTo: "7" }, 0), RangeError)
    assert.throws(() => dueOf({ ...hourly, timezone: "Mars/Olympus" }, 0), RangeError)
  })
})

/** Both changes of a year; none in Kathmandu, 45 minutes off the full hour. The last ones are changes of other kinds. */
const changes = [
  ["Europe/Berlin", "2026-03-29T01:00:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00:00Z"],
  ["America/New_York", "2026-03-08T07:00:00Z"],
  ["America/New_York", "2026-11-01T06:00:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30:00Z"],
  ["America/Sao_Paulo", "2018-02-18T02:00:00Z"],
  ["America/Sao_Paulo", "2018-11-04T03:00:00Z"],
  ["Asia/Kathmandu", "2026-03-29T01:00:00Z"],
  ["Asia/Kathmandu", "2026-10-25T01:00:00Z"],
  ["America/Havana", "2026-11-01T05:00:00Z"],
  ["America/St_Johns", "2010-11-07T02:31:00Z"],
  ["Africa/Casablanca", "2026-03-22T02:00:00Z"],
  ["Pacific/Chatham", "2026-09-26T14:00:00Z"],
  ["Pacific/Apia", "2011-12-30T10:00:00Z"]
] as const

const minuteMillis = 60_000
const dayMinutes = 1_440

/** Times near what the clock shows at its change, and any others. */
const someTime = (random: SeededRandom, zone: string, change: number): string => {
  const shown = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, timeStyle: "short" }).format(change - 1)
  const [hour = 0, minute = 0] = shown.split(":").map(Number)
  const near = hour * 60 + minute + random.below(180) - 90
  const chosen = random.chance(0.6) ? near + dayMinutes : random.below(dayMinutes)
  return new Date((chosen % dayMinutes) * minuteMillis).toISOString().slice(11, 16)
}

const someSettings = (random: SeededRandom, zone: string, change: number): HoldSettings => {
  const time = (): string => someTime(random, zone, change)
  const isQuiet = random.chance(0.6)
  return {
    delivery: (["instant", "hourly", "daily"] as const)[random.below(3)]!,
    digestAt: random.chance(0.1) ? null : time(),
    quietFrom: isQuiet ? time() : null,
    quietTo: isQuiet ? time() : null,
    timezone: zone
  }
}

/** Up to two days from the change, half of them within hours of it, and at full minutes. */
const someInstant = (random: SeededRandom, change: number): number => {
  const reach = (random.chance(0.5) ? 4 * 60 : 2 * dayMinutes) * minuteMillis
  const chosen = change + random.below(2 * reach) - reach
  return random.chance(0.3) ? Math.floor(chosen / minuteMillis) * minuteMillis : chosen
}

const assertSame = (settings: HoldSettings, now: number): void =>
  assert.strictEqual(
    iso(dueOf(settings, now)),
    iso(naiveDueOf(settings, now)),
    `${JSON.stringify(settings)} at ${new Date(now).toISOString()}`
  )

describe("holdSpanAt", () => {
  it("holds until the next instant by which something else is due", () => {
    const spanAt = (settings: HoldSettings, now: string) => {
      const { dueMillis, untilMillis } = holdSpanAt(settings, at(now))
      return [iso(dueMillis), Number.isFinite(untilMillis) ? iso(untilMillis) : untilMillis]
    }
    const night = { ...instant, quietFrom: "22:00", quietTo: "07:00" }
    assert.deepStrictEqual(spanAt(instant, "2026-11-20T10:20:00Z"), [undefined, Infinity])
    assert.deepStrictEqual(spanAt(night, "2026-11-20T10:20:00Z"), [undefined, "2026-11-20T21:00Z"])
    assert.deepStrictEqual(spanAt(night, "2026-11-20T21:00:00Z"), ["2026-11-21T06:00Z", "2026-11-21T06:00Z"])
    assert.deepStrictEqual(spanAt({ ...night, delivery: "hourly" }, "2026-11-20T21:30:00Z"), [
      "2026-11-21T06:00Z",
      "2026-11-20T22:00Z"
    ])
    assert.deepStrictEqual(spanAt(daily, "2026-11-20T08:00:00Z"), ["2026-11-21T08:00Z", "2026-11-21T08:00Z"])
  })

  it.effect("is as long as what is due stays the same, minute by minute, over changes of clocks", () =>
    forSeeds(10, (random) =>
      Effect.sync(() => {
        for (const [zone, iso] of changes) {
          const settings = someSettings(random, zone, at(iso))
          const now = someInstant(random, at(iso))
          const { dueMillis, untilMillis } = holdSpanAt(settings, now)
          assert.strictEqual(dueMillis, dueOf(settings, now))
          assert.isAbove(untilMillis, now)
          const said = `${JSON.stringify(settings)} at ${new Date(now).toISOString()}`
          const last = Math.min(untilMillis, now + dayMinutes * minuteMillis)
          for (let later = now; later < last; later += 7 * minuteMillis)
            assert.strictEqual(dueOf(settings, later), dueMillis, said)
          if (untilMillis > last) continue
          assert.strictEqual(dueOf(settings, untilMillis - 1), dueMillis, said)
          // Hours within quiet hours are all due at their end.
          if (dueMillis === undefined || dueMillis === untilMillis)
            assert.notStrictEqual(dueOf(settings, untilMillis), dueMillis, said)
        }
      })
    )
  )
})

describe("readSchedule", () => {
  it("reads settings as Postgres writes them", () => {
    assert.deepStrictEqual(readSchedule("daily 08:30 - - Asia/Kathmandu"), {
      ...daily,
      digestAt: "08:30",
      timezone: "Asia/Kathmandu"
    })
    const night = { quietFrom: "22:00", quietTo: "07:00" }
    assert.deepStrictEqual(readSchedule("instant - 22:00 07:00 Europe/Berlin"), { ...instant, ...night })
    assert.throws(() => readSchedule("weekly - - - UTC"), RangeError)
  })
})

describe("dueOf, simulated", () => {
  // SIMULATION_RUNS=1000 for a long run by hand.
  it.effect("is what a look at the clock on the wall every minute says, over changes of clocks", () =>
    forSeeds(10, (random) =>
      Effect.sync(() => {
        for (const [zone, iso] of changes) {
          for (let n = 0; n < 8; n++)
            assertSame(someSettings(random, zone, at(iso)), someInstant(random, at(iso)))
        }
      })
    )
  )

  const zones = Intl.supportedValuesOf("timeZone")
  const [first, last] = [at("2020-01-01T00:00:00Z"), at("2037-12-31T00:00:00Z")]

  it.effect("is the same in any zone, at any time", () =>
    forSeeds(10, (random) =>
      Effect.sync(() => {
        for (let n = 0; n < 4; n++) {
          const now = first + random.below(last - first)
          assertSame(someSettings(random, zones[random.below(zones.length)]!, now), now)
        }
      })
    )
  )
})
