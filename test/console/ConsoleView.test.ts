import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { pointsFewer, relativeChange } from "#src/console/page/analytics/Change.ts"
import {
  formatBucket,
  formatDuration,
  formatExactUsd,
  formatShare,
  formatTick,
  formatUsd
} from "#src/console/page/figures/Format.ts"
import { countryName, valueLabel } from "#src/console/page/analytics/Labels.ts"
import {
  filterNames,
  isFiltered,
  periodOf,
  presets,
  readQuery,
  siteView,
  withFilter,
  withoutFilters,
  withPeriod
} from "#src/console/page/analytics/SiteParams.ts"
import { parseView } from "#src/console/page/view/Rooms.ts"
import { formatView, homeView, type View, withParams } from "#src/console/page/view/View.ts"
import { consoleRooms } from "./ConsoleRooms.ts"

const { paged } = consoleRooms
const search = (view: View): string => formatView(view).slice(1)
const parse = (query: string): View => parseView(consoleRooms, query)

const text = fc.string({ minLength: 1, maxLength: 30, unit: "grapheme" })

const views: fc.Arbitrary<View> = fc.constantFrom(...paged).chain(({ page }) =>
  fc.record({
    room: fc.constant(page.path),
    params:
      page.params.length === 0
        ? fc.constant({})
        : fc.dictionary(fc.constantFrom(...page.params), text, { noNullPrototype: true })
  })
)

describe("the address of a view", () => {
  it("leads to the same view, of whichever room", () => {
    fc.assert(fc.property(views, (view) => assert.deepStrictEqual(parse(search(view)), view)))
  })

  it("is bare for the usual view, and ignores what its page does not know", () => {
    assert.strictEqual(formatView(homeView), "/")
    assert.deepStrictEqual(parse("?key=sk_x&page=&q=1&session=a"), homeView)
    assert.deepStrictEqual(parse("?room=kitchen&window=decade"), homeView)
    assert.deepStrictEqual(parse("?room=agents&site=st_1&session=a"), {
      room: "agents",
      params: { session: "a" }
    })
  })

  it("loses a value that is the usual one again", () => {
    const week = withParams({ room: "models", params: {} }, { window: "week", usage: "cost" })
    assert.strictEqual(formatView(week), "/?room=models&window=week&usage=cost")
    assert.strictEqual(formatView(withParams(week, { window: undefined })), "/?room=models&usage=cost")
  })
})

describe("the address of a site", () => {
  it("has a period that exists, else the usual one", () => {
    for (const query of ["", "?period=century", "?period=custom&from=2026-11-01"]) {
      assert.deepStrictEqual(periodOf(parse(query)), { name: "30d" }, query)
    }
    const dates = { name: "custom", from: "2026-11-01", to: "2026-11-20" } as const
    for (const period of [...presets.map(({ name }) => ({ name })), dates]) {
      const view = withPeriod(withFilter(siteView("st_1"), "country", "DE"), period)
      assert.deepStrictEqual(periodOf(parse(search(view))), period)
      // Chosen again, nothing is left of the one before.
      assert.strictEqual(formatView(withPeriod(view, { name: "30d" })), "/?site=st_1&country=DE")
    }
  })

  it("has one filter a dimension; the unknown value is (none)", () => {
    const german = withFilter(withFilter(homeView, "country", "FR"), "country", "DE")
    assert.strictEqual(formatView(german), "/?country=DE")
    assert.strictEqual(
      readQuery(withParams(withFilter(german, "source", null), { pages: "exit" })),
      "period=30d&country=DE&source=%28none%29"
    )
    assert.isTrue(isFiltered(german))
    assert.deepStrictEqual(withoutFilters(german, ["country"]), homeView)
    const all = filterNames.reduce((view, name) => withFilter(view, name, "x"), siteView("st_1"))
    assert.deepStrictEqual(withoutFilters(all), siteView("st_1"))
  })
})

describe("a change against the period before", () => {
  it("is in percent, and none where there was nothing", () => {
    assert.deepStrictEqual(relativeChange(150, 100), { text: "+50%", verdict: "better" })
    assert.deepStrictEqual(relativeChange(96, 100), { text: "−4.0%", verdict: "worse" })
    assert.deepStrictEqual(relativeChange(1001, 1000), { text: "no change", verdict: "same" })
    assert.isUndefined(relativeChange(5, 0))
  })

  it("of the bounce rate is in points, and better when it is less", () => {
    assert.deepStrictEqual(pointsFewer(40, 42.5), { text: "−2.5 pt", verdict: "better" })
    assert.deepStrictEqual(pointsFewer(50, 40), { text: "+10.0 pt", verdict: "worse" })
    assert.strictEqual(pointsFewer(40, 40).verdict, "same")
  })
})

describe("figures in words", () => {
  it("shows buckets at the wall-clock time of the site, wherever the reader is", () => {
    for (const offset of ["+01:00", "-11:00", "+13:45"]) {
      assert.strictEqual(formatTick(`2026-11-20T14:00:00${offset}`, "hour"), "14:00")
      assert.strictEqual(formatTick(`2026-01-01T00:00:00${offset}`, "month"), "Jan 2026")
      assert.match(formatTick(`2026-11-20T00:00:00${offset}`, "hour"), /^(20 Nov|Nov 20)$/)
      assert.match(formatBucket(`2026-11-20T00:00:00${offset}`, "day"), /Friday/)
    }
  })

  it("rounds durations to seconds and small shares to tenths", () => {
    assert.deepStrictEqual([0, 59.6, 61, 3_725].map(formatDuration), [
      "0 s",
      "1 min 0 s",
      "1 min 1 s",
      "1 h 2 min"
    ])
    assert.deepStrictEqual([0, 0.034, 0.456, 1].map(formatShare), ["0%", "3.4%", "46%", "100%"])
  })

  it("shows what a call cost to the last digit, and sums down to the millionth", () => {
    assert.strictEqual(formatExactUsd(0.000000000001), "$0.000000000001")
    assert.strictEqual(formatExactUsd(0.00000969), "$0.00000969")
    assert.deepStrictEqual([0, 0.0000001, 0.00001907, 4.99996705, 1234.5678].map(formatUsd), [
      "$0.00",
      "<$0.000001",
      "$0.000019",
      "$4.999967",
      "$1,234.57"
    ])
  })

  it("names countries, and keeps codes that are none", () => {
    assert.strictEqual(countryName("DE"), "Germany")
    assert.strictEqual(valueLabel("country", "T1"), "T1")
    assert.strictEqual(valueLabel("country", null), "Unknown")
    assert.strictEqual(valueLabel("source", "(none)"), "Direct or unknown")
    assert.strictEqual(valueLabel("device", "mobile"), "Mobile")
  })
})
