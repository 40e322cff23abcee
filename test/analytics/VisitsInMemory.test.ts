import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import { SharedTexts } from "#streams/analytics/SharedTexts.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { type OwnedVisitEvent, pack, visitEventOf } from "#streams/analytics/VisitEvent.ts"
import { VisitorDay } from "#streams/analytics/Visits.ts"
import { VisitorMap } from "#streams/analytics/VisitorMap.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { storedEvent } from "./Events.ts"
import { naiveVisits } from "./NaiveVisits.ts"
import { sessionise, visitEvent } from "./VisitEvents.ts"

describe("a map by visitor", () => {
  it("answers what a map of big integers answers, also where visitors have the lower bits in common", () => {
    const visitor = fc
      .record({
        low: fc.constantFrom(0n, 1n, 2n ** 30n - 1n),
        high: fc.constantFrom(0n, 1n, 5n, 2n ** 34n - 1n)
      })
      .map(({ high, low }) => (high << 30n) | low)
    const step = fc.record({ does: fc.constantFrom("set", "set", "delete"), visitor, value: fc.nat() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const map = new VisitorMap<number>()
        const plain = new Map<bigint, number>()
        for (const { does, value, visitor } of steps) {
          if (does === "set") {
            map.set(visitor, value)
            plain.set(visitor, value)
          } else {
            map.delete(visitor)
            plain.delete(visitor)
          }
          assert.strictEqual(map.size, plain.size)
          for (const one of steps) assert.strictEqual(map.get(one.visitor), plain.get(one.visitor))
        }
      }),
      { numRuns: 300 }
    )
  })
})

describe("shared texts", () => {
  it("are the bytes that were asked for, whichever text had the place before", () => {
    const byte = fc.integer({ min: 0, max: 255 })
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 3, max: 2 }),
      fc.array(byte, { maxLength: 300 }).map((list) => Uint8Array.from(list)),
      fc
        .tuple(byte, fc.integer({ min: 250, max: 260 }))
        .map(([one, length]) => new Uint8Array(length).fill(one))
    )
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 40 }), (texts) => {
        const shared = new SharedTexts(4)
        for (const text of [...texts, ...texts]) {
          const row = Buffer.concat([Buffer.from([7]), text, Buffer.from([7])])
          assert.strictEqual(shared.get(row, 1, 1 + text.length), Buffer.from(text).toString("latin1"))
        }
      }),
      { numRuns: 300 }
    )
  })
})

/** The parts of an event that visits need, from all of it. */
const plainEventOf = (event: StoredEvent): OwnedVisitEvent => ({
  site: event.site,
  kind: event.kind,
  day: event.day,
  ts: event.ts,
  visitor: event.visitor,
  name: pack(event.name),
  hostname: pack(event.hostname),
  path: pack(event.path),
  pv: pack(event.pv),
  engagedMillis: event.engagedMillis,
  attributes: [
    event.referrer,
    event.source,
    event.channel,
    event.utmSource,
    event.utmMedium,
    event.utmCampaign,
    event.utmTerm,
    event.utmContent,
    event.country,
    event.browser,
    event.browserVersion,
    event.os,
    event.device
  ]
    .map(pack)
    .join("")
})

describe("an event of a log", () => {
  const text = fc.oneof(fc.constantFrom("", "/", "/a", "/b"), fc.string({ unit: "grapheme", maxLength: 200 }))
  const event = fc.record({
    site: fc.constantFrom("st_1", "st_2", "st_1~1"),
    kind: fc.constantFrom<StoredEvent["kind"]>("pageview", "event", "engage"),
    day: fc.integer({ min: 0, max: 65_535 }),
    visitor: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    name: text,
    hostname: text,
    path: text,
    pv: text,
    referrer: text,
    device: text,
    engagedMillis: fc.nat({ max: 4_294_967_295 })
  })

  it("is read from its place in a frame as from the whole event", () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 6 }), (events) => {
        const records = events.map((one, index) =>
          EventRecord.encode(storedEvent({ ...one, ts: one.day * 86_400_000 + index })).slice()
        )
        const frame = Buffer.concat([Buffer.from("head"), ...records])
        let at = 4
        for (const record of records) {
          const placed = frame.subarray(at, at + record.length)
          at += record.length
          const plain = plainEventOf(EventRecord.decode(record))
          assert.deepStrictEqual(visitEventOf(EventRecord.checked(placed), EventRecord.headerBytes), plain)
          assert.throws(() =>
            visitEventOf(placed.subarray(0, -4 - record.length / 2), EventRecord.headerBytes)
          )
        }
      }),
      { numRuns: 300 }
    )
  })
})

describe("a visitor-day of many pages and page views", () => {
  const turn = fc.record({
    kind: fc.constantFrom<StoredEvent["kind"]>("pageview", "pageview", "pageview", "event", "engage"),
    wait: fc.constantFrom(0.1, 1, 5, 20, 31, 70),
    path: fc.integer({ min: 0, max: 14 }),
    pv: fc.integer({ min: 0, max: 14 }),
    engagedMillis: fc.nat({ max: 600_000 })
  })

  it("marks first views, and credits pings, as plain lists of all events do", () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 80 }), (turns) => {
        let minutes = 0
        const events = turns.map(({ kind, path, pv, wait, ...rest }) =>
          visitEvent((minutes += wait), {
            ...rest,
            kind,
            path: pack(`/${path}`),
            pv: pack(pv === 0 ? "" : `pv${pv}`)
          })
        )
        const rows = sessionise(events)
        const paths = events.filter(({ kind }) => kind === "pageview").map(({ path }) => path)
        const inTime = rows.toSorted((left, right) => left.start - right.start || left.part - right.part)
        assert.deepStrictEqual(
          inTime.flatMap(({ pages }) => pages),
          paths
        )
        assert.deepStrictEqual(
          inTime.flatMap(({ pageNew }) => pageNew),
          paths.map((path, index) => (paths.indexOf(path) === index ? 1 : 0))
        )
        assert.deepStrictEqual(
          inTime.filter(({ part }) => part === 0).map(({ engagedMillis }) => engagedMillis),
          naiveVisits(events, pack("")).map(({ engagedMillis }) => engagedMillis)
        )
      }),
      { numRuns: 500 }
    )
  })

  it("finds the latest 20,000 page views, as a list of all of them says", () => {
    const day = new VisitorDay()
    const random = new SeededRandom(24)
    const all: Array<string> = []
    /** where each was last seen */
    const seenAt = new Map<string, number>()
    let live = 0
    let oldest = 0
    for (let at = 0; at < 45_000; at++) {
      const pv = pack(`${random.chance(0.1) ? random.below(at + 1) : at}`)
      day.push(visitEvent(at / 1_000, { pv }))
      if (!day.hasView(pv)) assert.fail(pv)
      const isLive = (seenAt.get(pv) ?? -1) >= oldest
      all.push(pv)
      seenAt.set(pv, at)
      if (!isLive) live++
      if (live <= 20_000) continue
      while (seenAt.get(all[oldest] ?? "") !== oldest) oldest++
      if (day.hasView(all[oldest] ?? "")) assert.fail(all[oldest])
      live--
      oldest++
    }
    for (const [pv, at] of seenAt) assert.strictEqual(day.hasView(pv), at >= oldest, pv)
  })
})
