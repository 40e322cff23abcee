import * as Decimal from "#schemas/llm/Decimal.ts"
import { type PicoUsd, picoOf } from "#schemas/llm/Money.ts"
import type { UpstreamUsage } from "#streams/llm/UpstreamUsage.ts"
import type { CatalogueModel, ModelPrices } from "#src/llm/catalogue/CatalogueModel.ts"
import { pricesAt } from "#src/llm/catalogue/CataloguePrices.ts"

const times = (price: Decimal.Decimal, count: number): Decimal.Decimal =>
  Decimal.multiply(price, { units: BigInt(count), scale: 0 })

const sum = (amounts: ReadonlyArray<Decimal.Decimal>): Decimal.Decimal =>
  amounts.reduce(Decimal.add, Decimal.zero)

/**
 * What is held, a token, for a model whose list has no price because it passes calls on to others: as dear as the
 * dearest models of 2026. It is charged by what the upstream says of the call.
 */
const unknownPrice = { units: 3n, scale: 5 }
const unknownPrices: ModelPrices = {
  prompt: unknownPrice,
  completion: unknownPrice,
  request: Decimal.zero,
  image: Decimal.zero,
  cacheRead: unknownPrice,
  cacheWrite: unknownPrice,
  reasoning: unknownPrice
}

const pricesOf = (model: CatalogueModel, promptTokens: number): ModelPrices =>
  pricesAt(model, promptTokens) ?? unknownPrices

const dearer = (a: Decimal.Decimal, b: Decimal.Decimal): Decimal.Decimal =>
  Decimal.compare(a, b) < 0 ? b : a

/** The most that so much costs, whatever of it is cached or thought: what a call holds. */
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

/** What the upstream charges for a model that is free here, as for a search in the web: nobody but the platform pays it. */
export const lostOn = (model: CatalogueModel, { cost }: UpstreamUsage): PicoUsd =>
  model.isFree && cost !== undefined ? picoOf(cost) : 0n

/** An upstream may charge more than its list says, for a search or a long context, but hardly so many times more. */
const plausibleFactor = { units: 20n, scale: 0 }
/** … unless the amount is small anyway */
const plausibleUsd = { units: 1n, scale: 2 }

/**
 * What a call is charged: the upstream's own cost with the markup, else its tokens at the list's prices. Rounded once.
 * A cost that cannot be true, like a thousand dollars for three words, does not count. Source: decisions, LLM (Charging).
 */
export const chargeOf = (model: CatalogueModel, usage: UpstreamUsage, images: number): PicoUsd => {
  if (model.isFree) return 0n
  const listed = byTokens(model, usage, images)
  if (usage.cost === undefined) return picoOf(listed)
  const charged = Decimal.multiply(usage.cost, model.markupFactor)
  const isPlausible =
    model.prices === undefined ||
    Decimal.compare(charged, plausibleUsd) <= 0 ||
    Decimal.compare(charged, Decimal.multiply(listed, plausibleFactor)) <= 0
  return picoOf(isPlausible ? charged : listed)
}
