import * as Decimal from "#schemas/llm/Decimal.ts"
import { type PicoUsd, picoOf } from "#schemas/llm/Money.ts"
import type { EstimateReason } from "#streams/llm/CallRecord.ts"
import type { UpstreamUsage } from "#streams/llm/UpstreamUsage.ts"
import type { CatalogueModel, ModelPrices } from "#src/llm/catalogue/CatalogueModel.ts"
import { pricesAt } from "#src/llm/catalogue/CataloguePrices.ts"

const times = (price: Decimal.Decimal, count: number): Decimal.Decimal =>
  Decimal.multiply(price, { units: BigInt(count), scale: 0 })

const sum = (amounts: ReadonlyArray<Decimal.Decimal>): Decimal.Decimal =>
  amounts.reduce(Decimal.add, Decimal.zero)

/**
 * The hold, a token, for a model whose list has no price because it passes calls on to others: as dear as the dearest
 * models of 2026. It is charged by the upstream's cost of the call.
 */
const unknownPrice = { units: 3n, scale: 5 }
const unknownOutputPrice = { units: 12n, scale: 5 }
const unknownPrices: ModelPrices = {
  prompt: unknownPrice,
  completion: unknownOutputPrice,
  request: Decimal.zero,
  image: Decimal.zero,
  cacheRead: unknownPrice,
  cacheWrite: unknownPrice,
  reasoning: unknownOutputPrice
}

const pricesOf = (model: CatalogueModel, promptTokens: number): ModelPrices =>
  pricesAt(model, promptTokens) ?? unknownPrices

const dearer = (a: Decimal.Decimal, b: Decimal.Decimal): Decimal.Decimal =>
  Decimal.compare(a, b) < 0 ? b : a

/** The highest cost of so many tokens, cached or thought ones included: a call's hold. */
export const estimate = (
  model: CatalogueModel,
  promptTokens: number,
  outputTokens: number,
  images: number
): PicoUsd => {
  const prices = pricesOf(model, promptTokens)
  return picoOf(
    sum([
      times(dearer(prices.prompt, prices.cacheWrite), promptTokens),
      times(dearer(prices.completion, prices.reasoning), outputTokens),
      times(prices.image, images),
      prices.request
    ])
  )
}

/** Tokens by the prices pinned at admission, cached ones at theirs. */
const byTokens = (model: CatalogueModel, usage: UpstreamUsage, images: number): Decimal.Decimal => {
  const { cacheWriteTokens, cachedTokens, completionTokens, promptTokens, reasoningTokens } = usage
  const prices = pricesOf(model, promptTokens)
  return sum([
    times(prices.prompt, promptTokens - cachedTokens - cacheWriteTokens),
    times(prices.cacheRead, cachedTokens),
    times(prices.cacheWrite, cacheWriteTokens),
    times(prices.completion, completionTokens - reasoningTokens),
    times(prices.reasoning, reasoningTokens),
    times(prices.image, images),
    prices.request
  ])
}

/** An upstream may charge more than its list price, for a search or a long context, but hardly so many times more. */
const plausibleFactor = { units: 20n, scale: 0 }
/** … unless the amount is small anyway */
const plausibleUsd = { units: 1n, scale: 2 }

/** The cost of a call beside its tokens, and the ceiling of belief if no list has a price. */
export interface Terms {
  /** USD: fees of plugins, searches and the like that are held */
  readonly fees: Decimal.Decimal
  /** USD, the highest believable cost of a call whose price no list has */
  readonly ceiling: Decimal.Decimal
}

/** The cost of a call. */
export interface Cost {
  /** the caller's charge, if the call is paid: with the markup */
  readonly charge: PicoUsd
  /** the upstream's cost */
  readonly own: PicoUsd
  /** the reason for an estimate; undefined: the upstream's own cost, or its tokens at the list's prices */
  readonly doubt: EstimateReason | undefined
}

/** A bound by the list's prices, if there are any: a cost is believed only within that of the request's tokens. */
const isPlausible = (
  model: CatalogueModel,
  cost: Decimal.Decimal,
  listed: Decimal.Decimal,
  terms: Terms
): boolean => {
  if (model.isFree || model.prices === undefined) return Decimal.compare(cost, terms.ceiling) <= 0
  const charged = Decimal.multiply(cost, model.markupFactor)
  const most = Decimal.multiply(Decimal.add(listed, terms.fees), plausibleFactor)
  return Decimal.compare(charged, plausibleUsd) <= 0 || Decimal.compare(charged, most) <= 0
}

/**
 * The cost of a call: the upstream's own cost with the markup, else its tokens at the list's prices. Rounded once. A cost
 * that cannot be true, like a thousand dollars for three words, counts as unknown. Source: contract/llm#charging.
 */
export const costOfCall = (
  model: CatalogueModel,
  usage: UpstreamUsage,
  images: number,
  terms: Terms
): Cost => {
  const listed = model.isFree ? Decimal.zero : byTokens(model, usage, images)
  const isBelieved = usage.cost !== undefined && isPlausible(model, usage.cost, listed, terms)
  if (usage.cost === undefined || !isBelieved) {
    const amount = picoOf(listed)
    const noPrice = model.prices === undefined && !model.isFree ? "no_price" : undefined
    return { charge: amount, own: amount, doubt: usage.cost === undefined ? noPrice : "cost_out_of_bounds" }
  }
  // The platform pays the cost of a free model, unless its caller asked for priced extras.
  const isPaid = !model.isFree || terms.fees.units > 0n
  const charge = isPaid ? picoOf(Decimal.multiply(usage.cost, model.markupFactor)) : 0n
  return { charge, own: picoOf(usage.cost), doubt: undefined }
}
