import type { Decimal } from "#schemas/llm/Decimal.ts"

/** A model of the catalogue, as routing, billing and the models list need it. Source: contract/llm#models-list. */
export interface CatalogueModel {
  readonly id: string
  readonly name: string
  readonly description: string
  /** the first segment of the id; markups are kept by it */
  readonly provider: string
  /** epoch seconds, of the upstream's list */
  readonly created: number
  /** tokens */
  readonly contextLength: number
  /** tokens, if the upstream's list has it */
  readonly maxCompletionTokens: number | null
  readonly inputModalities: ReadonlyArray<string>
  readonly outputModalities: ReadonlyArray<string>
  readonly supportedParameters: ReadonlyArray<string>
  /** vision, tools, long-context, free, reasoning, audio */
  readonly categories: ReadonlyArray<string>
  /** every price is 0 */
  readonly isFree: boolean
  /** takes images */
  readonly isVision: boolean
  /** the upstream's list does not say which inputs it takes */
  readonly takesAnything?: boolean
  readonly hasTools: boolean
  /** decimal text, markup included, as the contract shows it; "-1" of a router model stays "-1" */
  readonly pricing: {
    readonly prompt: string
    readonly completion: string
    readonly request: string
    readonly image: string
  }
  /** the prices of a call; undefined for a model that routes (price -1): only the upstream knows its cost */
  readonly prices: ModelPrices | undefined
  /** prices of calls with at least so many prompt tokens, where the list has such, shortest first: see `pricesAt` */
  readonly longPrompts?: ReadonlyArray<{ readonly minPromptTokens: number; readonly prices: ModelPrices }>
  /** 1 + percent/100 of the provider, by which the upstream's own `usage.cost` is multiplied */
  readonly markupFactor: Decimal
}

/** USD per unit with the markup in them, exact. A call keeps the ones of its admission. */
export interface ModelPrices {
  readonly prompt: Decimal
  readonly completion: Decimal
  readonly request: Decimal
  readonly image: Decimal
  /** of prompt tokens read from the upstream's cache; the prompt price where the list has none */
  readonly cacheRead: Decimal
  /** of prompt tokens written to the upstream's cache; the prompt price where the list has none */
  readonly cacheWrite: Decimal
  /** of reasoning tokens among the completion; the completion price where the list has none, or 0 */
  readonly reasoning: Decimal
}
