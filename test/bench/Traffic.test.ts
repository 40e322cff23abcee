import { assert, describe, it } from "vitest"
import { decodeBrowserEvent } from "#streams/analytics/BrowserDecoder.ts"
import { sentByBrowser } from "#streams/analytics/Draft.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import { parsePageUrl } from "#streams/analytics/PageUrl.ts"
import { parseAgent } from "#streams/analytics/Agent.ts"
import { process } from "#streams/analytics/Pipeline.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { shareUntil } from "#bench/traffic/Curves.ts"
import { paths } from "#bench/traffic/Pages.ts"
import { Traffic, type TrafficEvent, type TrafficOptions } from "#bench/traffic/Traffic.ts"
import { userAgents } from "#bench/traffic/UserAgents.ts"

const options: TrafficOptions = {
  seed: 7,
  site: "st_traffic",
  domain: "example.com",
  timeZone: "Europe/Berlin",
  visitsPerDay: 2_000,
  paths: 5_000
}
/** 2026-03-23, a Monday; the clocks change on the Sunday after */
const monday = Date.UTC(2026, 2, 23) / 86_400_000

const traffic = new Traffic(options)
const days = Array.from({ length: 7 }, (_, index) => [...traffic.visitorsOf(monday + index)])
const week = days.flat(2)
const ofKind = (kind: string): ReadonlyArray<TrafficEvent> => week.filter(({ beacon }) => beacon.k === kind)

describe("made-up traffic", () => {
  it("is the same for the same seed, and another for another", () => {
    const again = new Traffic(options)
    assert.deepStrictEqual([...again.visitorsOf(monday + 3)], days[3])
    const other = new Traffic({ ...options, seed: 8 })
    assert.notDeepEqual([...other.visitorsOf(monday + 3)], days[3])
  })

  it("comes in the order of time, every event of the days before an instant once", () => {
    const until = traffic.startOf(monday + 6) + 12 * 3_600_000
    const inOrder = [...traffic.eventsFrom(monday, until)]
    for (const [index, { ts }] of inOrder.entries()) assert.isAtLeast(ts, inOrder[index - 1]?.ts ?? 0)
    const expected = week
      .filter(({ ts }) => ts < until)
      .map(({ beacon, ts }) => `${ts} ${beacon.pv} ${beacon.n}`)
    assert.deepStrictEqual(
      inOrder.map(({ beacon, ts }) => `${ts} ${beacon.pv} ${beacon.n}`).sort(),
      expected.sort()
    )
  })

  it("has the shares that it says it has", () => {
    const views = ofKind("pageview").length
    assert.closeTo(week.length / (7 * options.visitsPerDay), 3.33, 0.2)
    assert.closeTo(views / week.length, 0.54, 0.02)
    assert.closeTo(ofKind("engage").length / views, 0.75, 0.02)
    const visitors = days.flat().filter((events) => events[0] !== undefined)
    const bounced = visitors.filter((events) =>
      events.every(({ beacon }) => beacon.pv === events[0]?.beacon.pv)
    )
    assert.closeTo(bounced.length / visitors.length, 0.5, 0.06)
  })

  it("is busier on a Tuesday afternoon than on a Saturday night", () => {
    assert.isAbove(days[1]?.length ?? 0, (days[5]?.length ?? 0) * 1.3)
    assert.isBelow(shareUntil(monday + 5, 6), 0.1)
    assert.strictEqual(shareUntil(monday, 24), 1)
  })

  const lookups = {
    agentOf: parseAgent,
    pageOf: parsePageUrl,
    countryOfAddress: () => "",
    saltAt: () => ({ day: 0, text: "" }),
    eventAgeMaxMillis: Number.POSITIVE_INFINITY
  }
  const { domain, site: dataset } = options
  const site = { dataset, domain, visitorSecret: new Uint8Array(), retentionDays: null }
  const storedOf = ({ beacon, ts, visitor }: TrafficEvent): StoredEvent => {
    const sent = sentByBrowser(site, beacon, { ...visitor, countryCode: visitor.country, receivedMillis: ts })
    const stored = sent instanceof FieldFault ? sent : process(sent, lookups)
    if (typeof stored === "object" && "visitor" in stored) return stored
    return assert.fail(`${visitor.userAgent}: ${JSON.stringify(stored)}`)
  }

  it("is what the endpoint takes: every beacon decodes, and none is dropped", () => {
    for (const event of week.slice(0, 3_000)) {
      assert.deepStrictEqual(decodeBrowserEvent(JSON.parse(JSON.stringify(event.beacon))), event.beacon)
      assert.strictEqual(storedOf(event).country, event.visitor.country)
    }
  })

  it("comes from browsers that are known by name", () => {
    const [event] = week
    if (event === undefined) assert.fail("there is no event")
    for (const userAgent of userAgents) {
      assert.notStrictEqual(
        storedOf({ ...event, visitor: { ...event.visitor, userAgent } }).browser,
        "",
        userAgent
      )
    }
  })

  it("gives every visitor of a day an address of their own, and every page view an id", () => {
    const addresses = days[0]?.map((events) => events[0]?.visitor.address) ?? []
    assert.strictEqual(new Set(addresses).size, addresses.length)
    const views = ofKind("pageview")
    assert.strictEqual(new Set(views.map(({ beacon }) => beacon.pv)).size, views.length)
  })

  it("sends engage pings about a page view of the same visitor, no longer than it was visible", () => {
    for (const events of days.flat()) {
      for (const { beacon, ts } of events.filter((event) => event.beacon.k === "engage")) {
        const view = events.find((event) => event.beacon.k === "pageview" && event.beacon.pv === beacon.pv)
        assert.isDefined(view)
        assert.isAtMost(beacon.e ?? 0, ts - (view?.ts ?? 0))
      }
    }
  })

  it("has as many different paths as were asked for, each a path", () => {
    const made = paths(50_000)
    assert.strictEqual(new Set(made).size, 50_000)
    for (const path of made) assert.strictEqual(parsePageUrl(`https://example.com${path}`)?.path, path)
  })
})
