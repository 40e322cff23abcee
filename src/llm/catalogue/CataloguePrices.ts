import type { ListedModel, ListedPrices } from "#streams/llm/UpstreamList.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"
import type { CatalogueModel, ModelPrices } from "./CatalogueModel.ts"

/** Context from which on a model is tagged `long-context`. Source: contract/llm#models-list. */
const longContextTokens = 100_000

const one: Decimal.Decimal = { units: 1n, scale: 0 }
const hundredth: Decimal.Decimal = { units: 1n, scale: 2 }

/** 1 + percent / 100. */
export const markupFactorOf = (percent: Decimal.Decimal): Decimal.Decimal =>
  Decimal.add(one, Decimal.multiply(percent, hundredth))

/** The provider of a model: the first segment of its id. Source: contract/llm#models-list. */
export const providerOf = (modelId: string): string => modelId.split("/", 1)[0] ?? modelId

/** A model of the upstream's list as this server offers it, with the markup in its prices. */
export const offeredModel = (listed: ListedModel, markupFactor: Decimal.Decimal): CatalogueModel => {
  const { pricing, ...model } = listed
  const isVision = model.inputModalities.includes("image")
  const hasTools = model.supportedParameters.includes("tools")
  const shown = (price: Decimal.Decimal): string =>
    Decimal.format(price.units < 0n ? price : Decimal.multiply(price, markupFactor))
  return {
    ...model,
    provider: providerOf(model.id),
    categories: categoriesOf({ ...model, isVision, hasTools, isFree: pricing.isFree }),
    isFree: pricing.isFree,
    isVision,
    hasTools,
    pricing: {
      prompt: shown(pricing.prompt),
      completion: shown(pricing.completion),
      request: shown(pricing.request),
      image: shown(pricing.image)
    },
    prices: pricing.isRouted ? undefined : pricesOf(pricing, markupFactor),
    longPrompts: pricing.longPrompts.map(({ minPromptTokens, prices }) => ({
      minPromptTokens,
      prices: pricesOf(prices, markupFactor)
    })),
    markupFactor
  }
}

/** The prices of a call with so many prompt tokens. Undefined for a model that routes. */
export const pricesAt = (
  { longPrompts = [], prices }: Pick<CatalogueModel, "longPrompts" | "prices">,
  promptTokens: number
): ModelPrices | undefined =>
  prices === undefined
    ? undefined
    : (longPrompts.findLast(({ minPromptTokens }) => promptTokens >= minPromptTokens)?.prices ?? prices)

const pricesOf = (pricing: ListedPrices, markupFactor: Decimal.Decimal): ModelPrices => {
  const markedUp = (price: Decimal.Decimal) => Decimal.multiply(price, markupFactor)
  return {
    prompt: markedUp(pricing.prompt),
    completion: markedUp(pricing.completion),
    request: markedUp(pricing.request),
    image: markedUp(pricing.image),
    cacheRead: markedUp(known(pricing.cacheRead) ?? pricing.prompt),
    cacheWrite: markedUp(known(pricing.cacheWrite) ?? pricing.prompt),
    reasoning: markedUp(reasoningPrice(pricing))
  }
}

/** -1 stands for no price. */
const known = (price: Decimal.Decimal | undefined): Decimal.Decimal | undefined =>
  price === undefined || price.units < 0n ? undefined : price

/** Lists have 0 if reasoning has no price of its own: its tokens are then priced as all output. */
const reasoningPrice = ({ completion, reasoning }: ListedPrices): Decimal.Decimal =>
  reasoning === undefined || reasoning.units <= 0n ? completion : reasoning

type Tagged = Pick<CatalogueModel, "contextLength" | "isVision" | "hasTools" | "isFree"> &
  Pick<ListedModel, "supportedParameters" | "inputModalities" | "outputModalities">

/** Source: contract/llm#models-list. */
const categoriesOf = (model: Tagged): ReadonlyArray<string> => {
  const tags: ReadonlyArray<readonly [tag: string, holds: boolean]> = [
    ["vision", model.isVision],
    ["tools", model.hasTools],
    ["long-context", model.contextLength >= longContextTokens],
    ["free", model.isFree],
    ["reasoning", model.supportedParameters.includes("reasoning")],
    ["audio", [...model.inputModalities, ...model.outputModalities].includes("audio")]
  ]
  return tags.flatMap(([tag, holds]) => (holds ? [tag] : []))
}
