import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { pointsFewer, relativeChange } from "#src/console/page/figures/Change.ts"
import {
  formatBucket,
  formatDuration,
  formatExactUsd,
  formatShare,
  formatTick,
  formatUsd
} from "#src/console/page/figures/Format.ts"
import { countryName, valueLabel } from "#src/console/page/figures/Labels.ts"
import {
  emptyView,
  filterNames,
  formatView,
  panelNames,
  parseView,
  presets,
  readQuery,
  roomNames,
  usageWindows,
  type View,
  withFilter,
  withoutFilter
} from "#src/console/page/view/View.ts"

const search = (view: View): string => formatView(view).slice(1)

const text = fc.string({ minLength: 1, maxLength: 30, unit: "grapheme" })
const someOf = <N extends string>(names: ReadonlyArray<N>) =>
  fc.dictionary(fc.constantFrom(...names), text, { noNullPrototype: true })

const views: fc.Arbitrary<View> = fc.record({
  room: fc.constantFrom(...roomNames),
  window: fc.constantFrom(...usageWindows),
  site: fc.option(text, { nil: undefined }),
  session: fc.option(text, { nil: undefined }),
  period: fc.oneof(
    fc.constantFrom(...presets).map((name) => ({ name })),
    fc.constant({ name: "custom" as const, from: "2026-11-01", to: "2026-11-20" })
  ),
  filters: someOf(filterNames),
  tabs: someOf(panelNames)
})

describe("the address of a view", () => {
  it("leads to the same view", () => {
    fc.assert(fc.property(views, (view) => assert.deepStrictEqual(parseView(search(view)), view)))
  })

  it("is bare for the usual view, and ignores what it does not know", () => {
    assert.strictEqual(formatView(emptyView), "/")
    assert.deepStrictEqual(parseView("?period=century&key=sk_x&page=&q=1&period=7d"), emptyView)
    assert.deepStrictEqual(parseView("?period=custom&from=2026-11-01"), emptyView)
    assert.deepStrictEqual(parseView("?room=kitchen&window=decade"), emptyView)
  })

  it("has one filter a dimension; the unknown value is (none)", () => {
    const german = withFilter(withFilter(emptyView, "country", "FR"), "country", "DE")
    assert.strictEqual(formatView(german), "/?country=DE")
    assert.strictEqual(
      readQuery(withFilter(german, "source", null)),
      "period=30d&country=DE&source=%28none%29"
    )
    assert.deepStrictEqual(withoutFilter(german, "country"), emptyView)
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
