import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Decimal } from "#schemas/llm/Decimal.ts"
import type { CatalogueModel, ModelPrices } from "#src/llm/catalogue/CatalogueModel.ts"
import { costOfCall, estimate } from "#src/llm/calls/Charge.ts"
import type { UpstreamUsage } from "#streams/llm/UpstreamUsage.ts"
import { catalogueModel } from "./Models.ts"

/** A number as numerator and denominator, the plain way. */
interface Fraction {
  readonly over: bigint
  readonly under: bigint
}

const fraction = ({ scale, units }: Decimal): Fraction => ({ over: units, under: 10n ** BigInt(scale) })
const times = (a: Fraction, count: number): Fraction => ({ over: a.over * BigInt(count), under: a.under })
const product = (a: Fraction, b: Fraction): Fraction => ({ over: a.over * b.over, under: a.under * b.under })
const sum = (all: ReadonlyArray<Fraction>): Fraction =>
  all.reduce((a, b) => ({ over: a.over * b.under + b.over * a.under, under: a.under * b.under }))
/** The nearest pico-USD; a half goes up. */
const pico = ({ over, under }: Fraction): bigint => (2n * 10n ** 12n * over + under) / (2n * under)

const listed = (prices: ModelPrices, usage: UpstreamUsage, images: number): Fraction =>
  sum([
    times(fraction(prices.prompt), usage.promptTokens - usage.cachedTokens - usage.cacheWriteTokens),
    times(fraction(prices.cacheRead), usage.cachedTokens),
    times(fraction(prices.cacheWrite), usage.cacheWriteTokens),
    times(fraction(prices.completion), usage.completionTokens - usage.reasoningTokens),
    times(fraction(prices.reasoning), usage.reasoningTokens),
    times(fraction(prices.image), images),
    fraction(prices.request)
  ])

const price = fc.record({
  units: fc.bigInt({ min: 0n, max: 10n ** 9n }),
  scale: fc.integer({ min: 3, max: 23 })
})
const prices: fc.Arbitrary<ModelPrices> = fc.record({
  prompt: price,
  completion: price,
  request: price,
  image: price,
  cacheRead: price,
  cacheWrite: price,
  reasoning: price
})
const usages: fc.Arbitrary<UpstreamUsage> = fc
  .tuple(fc.nat(1_000_000), fc.nat(100_000), fc.nat(), fc.nat(), fc.nat())
  .map(([promptTokens, completionTokens, cached, written, thought]) => {
    const cachedTokens = cached % (promptTokens + 1)
    return {
      promptTokens,
      completionTokens,
      cachedTokens,
      cacheWriteTokens: written % (promptTokens - cachedTokens + 1),
      reasoningTokens: thought % (completionTokens + 1),
      cost: undefined
    }
  })
const markups = fc.record({ units: fc.bigInt({ min: 1_000n, max: 9_999n }), scale: fc.constant(3) })

const decimal = (units: bigint, scale: number): Decimal => ({ units, scale })
/** The caller's charge for a call without anything beside tokens. */
const chargeOf = (model: CatalogueModel, used: UpstreamUsage, images: number): bigint =>
  costOfCall(model, used, images, terms).charge
const terms = { fees: decimal(0n, 0), ceiling: decimal(10n, 0) }
const nothing: ModelPrices = catalogueModel().prices ?? assert.fail("no prices")
const usage = (fields: Partial<UpstreamUsage>): UpstreamUsage => ({
  promptTokens: 0,
  completionTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  cost: undefined,
  ...fields
})

describe("what a call is charged", () => {
  it("is its tokens, images and request at the list's prices, to the last pico-dollar", () => {
    fc.assert(
      fc.property(prices, usages, fc.nat(20), (list, used, images) => {
        const charge = chargeOf(catalogueModel({ prices: list }), used, images)
        assert.strictEqual(charge, pico(listed(list, used, images)))
      }),
      { numRuns: 1_000 }
    )
  })

  it("is the upstream's own cost times the markup where that can be true, whatever the list says", () => {
    fc.assert(
      fc.property(prices, usages, markups, fc.nat(40), (list, used, markupFactor, fold) => {
        const by = listed(list, used, 0)
        // A cost of up to 40 times the list's price, of which up to 20 are believed, and a cent always is.
        const cost = decimal((by.over * BigInt(fold) * 10n ** 30n) / by.under / 10n, 30)
        const markedUp = product(fraction(cost), fraction(markupFactor))
        const isBelieved =
          markedUp.over * 100n <= markedUp.under || markedUp.over * by.under <= 20n * by.over * markedUp.under
        const charge = chargeOf(catalogueModel({ prices: list, markupFactor }), { ...used, cost }, 0)
        assert.strictEqual(charge, pico(isBelieved ? markedUp : by))
      }),
      { numRuns: 1_000 }
    )
  })

  it("is rounded once, a half away from zero", () => {
    const half = catalogueModel({
      prices: { ...nothing, prompt: decimal(5n, 13), completion: decimal(5n, 13) }
    })
    assert.strictEqual(chargeOf(half, usage({ promptTokens: 1 }), 0), 1n)
    assert.strictEqual(chargeOf(half, usage({ promptTokens: 1, completionTokens: 1 }), 0), 1n, "not 1 + 1")
    const less = catalogueModel({ prices: { ...nothing, prompt: decimal(49_999n, 17) } })
    assert.strictEqual(chargeOf(less, usage({ promptTokens: 1 }), 0), 0n)
  })

  it("does not believe a fortune for a few words, nor let it pass where it comes with nothing", () => {
    const cheap = catalogueModel({ prices: { ...nothing, completion: decimal(1n, 6) } })
    const told = (cost: Decimal) => chargeOf(cheap, usage({ completionTokens: 3, cost }), 0)
    assert.strictEqual(told(decimal(1_000n, 0)), 3_000_000n)
    assert.strictEqual(told(decimal(1n, 2)), 10n ** 10n)
    assert.strictEqual(told(decimal(10_001n, 6)), 3_000_000n)
    assert.strictEqual(told(decimal(0n, 0)), 0n)
  })

  it("is what the upstream says for a model that routes, since no list knows it", () => {
    const routes = catalogueModel({ prices: undefined, markupFactor: decimal(102n, 2) })
    assert.strictEqual(
      chargeOf(routes, usage({ completionTokens: 3, cost: decimal(5n, 0) }), 0),
      51n * 10n ** 11n
    )
  })

  it("believes of a model without a price what a call may cost at most, and no more", () => {
    const routes = catalogueModel({ prices: undefined })
    const cost = (usd: bigint, model = routes) =>
      costOfCall(model, usage({ promptTokens: 10, completionTokens: 5, cost: decimal(usd, 0) }), 0, terms)
    assert.deepStrictEqual(cost(10n), { charge: 10n ** 13n, own: 10n ** 13n, doubt: undefined })
    const reckoned = 10n * 30_000_000n + 5n * 120_000_000n
    for (const usd of [11n, 10n ** 27n])
      assert.deepStrictEqual(cost(usd), { charge: reckoned, own: reckoned, doubt: "cost_out_of_bounds" })
    const free = catalogueModel({ isFree: true })
    assert.deepStrictEqual(cost(10n, free), { charge: 0n, own: 10n ** 13n, doubt: undefined })
    for (const usd of [11n, 10n ** 27n])
      assert.deepStrictEqual(cost(usd, free), { charge: 0n, own: 0n, doubt: "cost_out_of_bounds" })
  })

  it("is for a free model what was asked for beside tokens, which is not free", () => {
    const free = catalogueModel({ isFree: true, markupFactor: decimal(2n, 0) })
    const used = usage({ completionTokens: 5, cost: decimal(4n, 2) })
    const withFees = { ...terms, fees: decimal(1n, 1) }
    assert.deepStrictEqual(costOfCall(free, used, 0, withFees), {
      charge: 8n * 10n ** 10n,
      own: 4n * 10n ** 10n,
      doubt: undefined
    })
  })

  it("is nothing for a free model, whatever the upstream says", () => {
    const free = catalogueModel({ isFree: true, prices: { ...nothing, request: decimal(1n, 0) } })
    assert.strictEqual(chargeOf(free, usage({ completionTokens: 5, cost: decimal(3n, 0) }), 1), 0n)
  })

  it("follows the prices of long prompts from their length on", () => {
    const long = { ...nothing, completion: decimal(2n, 6) }
    const model = catalogueModel({
      prices: { ...nothing, completion: decimal(1n, 6) },
      longPrompts: [{ minPromptTokens: 1_000, prices: long }]
    })
    const of = (promptTokens: number) => chargeOf(model, usage({ promptTokens, completionTokens: 1 }), 0)
    assert.deepStrictEqual([of(999), of(1_000)], [1_000_000n, 2_000_000n])
    assert.deepStrictEqual(
      [estimate(model, 999, 1, 0), estimate(model, 1_000, 1, 0)],
      [1_000_000n, 2_000_000n]
    )
  })
})

describe("what a call holds", () => {
  it("is the most that so many tokens and images cost, whatever of them is cached or thought", () => {
    fc.assert(
      fc.property(prices, usages, fc.nat(5), (random, used, images) => {
        // Tokens read from a cache cost no more than others.
        const list = { ...random, cacheRead: random.prompt }
        const model = catalogueModel({ prices: list })
        const { completionTokens, promptTokens } = used
        const held = estimate(model, promptTokens, completionTokens, images)
        const extremes = [0, 1].flatMap((written) =>
          [0, 1].map((thought) => ({
            ...used,
            cachedTokens: 0,
            cacheWriteTokens: written * promptTokens,
            reasoningTokens: thought * completionTokens
          }))
        )
        assert.isTrue(chargeOf(model, used, images) <= held)
        assert.isTrue(extremes.some((one) => chargeOf(model, one, images) === held))
        assert.isTrue(estimate(model, promptTokens, completionTokens + 1, images) >= held)
      })
    )
  })

  it("is not nothing for a model that routes", () => {
    assert.isTrue(estimate(catalogueModel({ prices: undefined }), 100, 100, 0) > 0n)
  })
})
