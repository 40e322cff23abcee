import * as Decimal from "#schemas/llm/Decimal.ts"
import { type PicoUsd, picoOf } from "#schemas/llm/Money.ts"
import type { EstimateReason } from "#streams/llm/CallRecord.ts"
import type { UpstreamUsage } from "#streams/llm/UpstreamUsage.ts"
import type { CatalogueModel, ModelPrices } from "#src/llm/catalogue/CatalogueModel.ts"
import { pricesAt } from "#src/llm/catalogue/CataloguePrices.ts"

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

/** The prices of a list as integers of `10^-scale` USD: a call multiplies and adds them, and rounds once (0011). */
interface Rates extends Readonly<Record<keyof ModelPrices, bigint>> {
  readonly scale: number
  /** the dearest that a token of the prompt, and one of the answer, can come to */
  readonly promptMost: bigint
  readonly completionMost: bigint
}

const dearer = (a: bigint, b: bigint): bigint => (a < b ? b : a)

const makeRates = (prices: ModelPrices): Rates => {
  const scale = Math.max(...Object.values(prices).map((price: Decimal.Decimal) => price.scale))
  const at = (price: Decimal.Decimal): bigint => Decimal.rounded(price, scale)
  const [prompt, completion, cacheWrite, reasoning] = [
    at(prices.prompt),
    at(prices.completion),
    at(prices.cacheWrite),
    at(prices.reasoning)
  ]
  return {
    scale,
    prompt,
    completion,
    cacheWrite,
    reasoning,
    cacheRead: at(prices.cacheRead),
    request: at(prices.request),
    image: at(prices.image),
    promptMost: dearer(prompt, cacheWrite),
    completionMost: dearer(completion, reasoning)
  }
}

/** By their list, which lives as long as the catalogue has it, or a call that was admitted by it. */
const knownRates = new WeakMap<ModelPrices, Rates>()

const ratesAt = (model: CatalogueModel, promptTokens: number): Rates => {
  const prices = pricesAt(model, promptTokens) ?? unknownPrices
  const known = knownRates.get(prices)
  if (known !== undefined) return known
  const rates = makeRates(prices)
  knownRates.set(prices, rates)
  return rates
}

/** Most counts of a call are 0: no image, nothing cached, no thought. */
const times = (rate: bigint, count: number): bigint => (count === 0 ? 0n : rate * BigInt(count))

/** The highest cost of so many tokens, cached or thought ones included: a call's hold. */
export const estimate = (
  model: CatalogueModel,
  promptTokens: number,
  outputTokens: number,
  images: number
): PicoUsd => {
  const { completionMost, image, promptMost, request, scale } = ratesAt(model, promptTokens)
  const units =
    times(promptMost, promptTokens) + times(completionMost, outputTokens) + times(image, images) + request
  return picoOf({ units, scale })
}

/** Tokens by the prices pinned at admission, cached ones at theirs. */
const byTokens = (model: CatalogueModel, usage: UpstreamUsage, images: number): Decimal.Decimal => {
  const { cacheWriteTokens, cachedTokens, completionTokens, promptTokens, reasoningTokens } = usage
  const rates = ratesAt(model, promptTokens)
  const units =
    times(rates.prompt, promptTokens - cachedTokens - cacheWriteTokens) +
    times(rates.cacheRead, cachedTokens) +
    times(rates.cacheWrite, cacheWriteTokens) +
    times(rates.completion, completionTokens - reasoningTokens) +
    times(rates.reasoning, reasoningTokens) +
    times(rates.image, images) +
    rates.request
  return { units, scale: rates.scale }
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
