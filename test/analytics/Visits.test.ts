import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { pack, unpack, type VisitEvent } from "#streams/analytics/VisitEvent.ts"
import { partEventsMax, pathsMax, VisitorDay, type Visit } from "#streams/analytics/Visits.ts"
import { naiveVisits } from "./NaiveVisits.ts"
import { midnight, sessionise, visitEvent, visitEvents } from "./VisitEvents.ts"

const minute = 60_000
const at = (minutes: number): number => midnight / 1000 + minutes * 60
const starts = (events: ReadonlyArray<VisitEvent>): ReadonlyArray<number> =>
  sessionise(events).map(({ start }) => start)
const ping = (minutes: number, pv: string, engagedMillis: number): VisitEvent =>
  visitEvent(minutes, { kind: "engage", pv: pack(pv), engagedMillis })

describe("a visit", () => {
  it("goes on through a gap of exactly 30 minutes and ends with a longer one", () => {
    assert.deepStrictEqual(starts([visitEvent(0), visitEvent(30)]), [at(0)])
    assert.deepStrictEqual(starts([visitEvent(0), visitEvent(30 + 1 / minute)]), [at(0), at(30)])
  })

  it("takes its attributes from its first event, also when that one came last", () => {
    const visits = sessionise([visitEvent(5, { source: "Google" }), visitEvent(0, { source: "Bing" })])
    assert.strictEqual(visits.length, 1)
    assert.include(visits[0]?.attributes ?? "", "Bing")
    assert.notInclude(visits[0]?.attributes ?? "", "Google")
  })

  it("lists its pages and goals with their times, so that entry and exit are the first and the last", () => {
    const visits = sessionise([
      visitEvent(0, { path: pack("/a") }),
      visitEvent(1, { kind: "event", name: pack("signup"), path: pack("/a") }),
      visitEvent(2, { path: pack("/b") })
    ])
    const [visit] = visits
    assert.deepStrictEqual(visit?.pages.map(unpack), ["/a", "/b"])
    assert.deepStrictEqual(visit?.pageSeconds, [0, 120])
    assert.deepStrictEqual(visit?.goals.map(unpack), ["signup"])
    assert.deepStrictEqual(visit?.goalSeconds, [60])
    assert.strictEqual(visit?.lengthSeconds, 120)
  })

  it("says when the visitor was last active before it", () => {
    const visits = sessionise([visitEvent(0), visitEvent(3), visitEvent(60)])
    assert.deepStrictEqual(
      visits.map(({ previousLast }) => previousLast),
      [0, at(3)]
    )
  })

  it("marks a page's first view by the visitor that day, over all visits", () => {
    const paths = [0, 1, 2, 60, 61].map((minutes, index) =>
      visitEvent(minutes, { path: pack(["/a", "/b", "/a", "/a", "/c"][index] ?? "") })
    )
    assert.deepStrictEqual(
      sessionise(paths).map(({ pageNew }) => pageNew),
      [
        [1, 1, 0],
        [0, 1]
      ]
    )
  })

  it("marks what it no longer knows, and what it does", () => {
    const day = new VisitorDay()
    for (let page = 0; page < pathsMax + 2; page++) {
      day.push(visitEvent(page / 1000, { path: pack(`/${page % (pathsMax + 1)}`) }))
    }
    assert.deepStrictEqual(day.take().at(-1)?.pageNew.slice(-2), [2, 0])
  })

  it("that is very long goes on in further parts, and loses nothing", () => {
    const events = Array.from({ length: partEventsMax * 2 + 5 }, (_, index) => visitEvent(index / 100))
    const visits = sessionise(events)
    assert.deepStrictEqual(
      visits.map(({ more, part, pages, visit }) => [part, pages.length, visit, more]),
      [
        [0, partEventsMax, at(0), true],
        [1, partEventsMax, at(0), true],
        [2, 5, at(0), false]
      ]
    )
    assert.strictEqual(visits[1]?.previousLast, (visits[0]?.start ?? 0) + (visits[0]?.lengthSeconds ?? 0))
  })
})

describe("a row of a visit", () => {
  it("ends with each hour since the visit's start, and the first carries its engaged time", () => {
    const visits = sessionise([
      ...[0, 25, 50].map((minutes) => visitEvent(minutes)),
      visitEvent(60 - 1 / 60),
      visitEvent(60 + 1 / 60, { pv: pack("late") }),
      visitEvent(85),
      ping(86, "late", 5000)
    ])
    assert.deepStrictEqual(
      visits.map(({ engagedMillis, lengthSeconds, more, pages, part, visit }) => [
        part,
        visit,
        more,
        pages.length,
        lengthSeconds,
        engagedMillis
      ]),
      [
        [0, at(0), true, 4, 3599, 5000],
        [1, at(0), false, 2, 25 * 60 - 1, 0]
      ]
    )
  })

  it("says nothing of other rows where it is all of its visit", () => {
    const [visit] = sessionise([visitEvent(0), visitEvent(20)])
    assert.deepStrictEqual([visit?.visit, visit?.more], [0, false])
  })
})

describe("an engage ping", () => {
  const view = visitEvent(0, { pv: pack("a") })
  const engaged = (...pings: ReadonlyArray<VisitEvent>): number =>
    sessionise([view, ...pings])[0]?.engagedMillis ?? -1

  it("adds its time to the visit of its page view", () => {
    assert.strictEqual(engaged(ping(2, "a", 90_000)), 90_000)
  })

  it("is clamped to what has passed since the page view, less what is credited already", () => {
    assert.strictEqual(engaged(ping(2, "a", 10 * minute)), 2 * minute)
    assert.strictEqual(engaged(ping(2, "a", 90_000), ping(3, "a", 10 * minute)), 3 * minute)
    assert.strictEqual(engaged(ping(2, "a", 2 * minute), ping(2, "a", 1)), 2 * minute)
  })

  it("of an unknown page view is ignored and opens nothing", () => {
    assert.strictEqual(engaged(ping(1, "b", 1000)), 0)
    assert.strictEqual(engaged(ping(1, "", 1000)), 0)
    assert.deepStrictEqual(sessionise([ping(1, "a", 1000)]), [])
    assert.deepStrictEqual(
      sessionise([ping(0, "a", 1000), visitEvent(1, { pv: pack("a") })])[0]?.engagedMillis,
      0
    )
  })

  it("keeps a visit open, but does not reopen one that has ended", () => {
    assert.strictEqual(starts([view, ping(25, "a", 1000), visitEvent(50)]).length, 1)
    assert.strictEqual(starts([view, ping(31, "a", 1000), visitEvent(50)]).length, 2)
  })

  it("still credits a visit that has ended, within 24 hours", () => {
    const [first, second] = sessionise([view, visitEvent(60), ping(120, "a", 5000)])
    assert.deepStrictEqual([first?.engagedMillis, second?.engagedMillis], [5000, 0])
    assert.strictEqual(engaged(ping(24 * 60, "a", 5000)), 5000)
    assert.strictEqual(engaged(ping(24 * 60 + 1, "a", 5000)), 0)
  })
})

/** Folds in steps as they arrive, and anew from everything so far whenever an event is late: as the sink does. */
const asTheyArrive = (arrivals: ReadonlyArray<VisitEvent>): ReadonlyMap<string, Visit> => {
  const rows = new Map<string, Visit>()
  const keep = (visits: ReadonlyArray<Visit>): void => {
    for (const visit of visits) rows.set(`${visit.start}/${visit.part}`, structuredClone(visit))
  }
  let day = new VisitorDay()
  for (const [index, event] of arrivals.entries()) {
    if (day.isLate(event)) {
      day = new VisitorDay()
      rows.clear()
      const known = arrivals.slice(0, index + 1).toSorted((left, right) => left.ts - right.ts)
      for (const earlier of known) day.push(earlier)
    } else day.push(event)
    keep(day.take())
  }
  return rows
}

describe("visits of a visitor-day", () => {
  it("are the same however the events were handed over", () => {
    fc.assert(
      fc.property(visitEvents, fc.infiniteStream(fc.nat()), (events, order) => {
        // Ties keep their order of arrival, so a shuffle may only move events of different times.
        const distinct = events.filter(
          (event, index) => events.findIndex(({ ts }) => ts === event.ts) === index
        )
        const arrivals = distinct
          .map((event) => ({ event, key: order.next().value ?? 0 }))
          .toSorted((left, right) => left.key - right.key)
          .map(({ event }) => event)
        const expected = new Map(sessionise(distinct).map((visit) => [`${visit.start}/${visit.part}`, visit]))
        assert.deepStrictEqual(asTheyArrive(arrivals), expected)
      }),
      { numRuns: 500 }
    )
  })

  it("are what their definition says", () => {
    fc.assert(
      fc.property(visitEvents, (events) => {
        const found = Map.groupBy(sessionise(events), ({ start, visit }) => visit || start)
        const expected = naiveVisits(events, pack(""))
        assert.deepStrictEqual(
          Array.from(found.values(), (rows) => rows.toSorted((left, right) => left.part - right.part))
            .toSorted(([left], [right]) => (left?.start ?? 0) - (right?.start ?? 0))
            .map((rows): ReadonlyArray<unknown> => [
              rows.flatMap(({ pages }) => pages),
              rows.flatMap(({ goals }) => goals),
              rows[0]?.engagedMillis,
              rows[0]?.attributes
            ]),
          expected.map((visit): ReadonlyArray<unknown> => [
            visit.events.filter(({ kind }) => kind === "pageview").map(({ path }) => path),
            visit.events.filter(({ kind }) => kind === "event").map(({ name }) => name),
            visit.engagedMillis,
            visit.events[0]?.attributes
          ])
        )
      }),
      { numRuns: 500 }
    )
  })
})

describe("packed texts", () => {
  it("come back as they were, of any length and script", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), (text) => {
        assert.strictEqual(unpack(pack(text)), text)
      })
    )
  })
})
