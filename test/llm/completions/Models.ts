import { zero } from "#schemas/llm/Decimal.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"

/** A model that costs nothing, but for what the test says of it. */
export const catalogueModel = (fields: Partial<CatalogueModel> = {}): CatalogueModel => ({
  id: "acme/model",
  name: "Model",
  description: "",
  provider: "acme",
  created: 0,
  contextLength: 100_000,
  maxCompletionTokens: null,
  inputModalities: ["text"],
  outputModalities: ["text"],
  supportedParameters: [],
  categories: [],
  isFree: false,
  isVision: false,
  hasTools: false,
  pricing: { prompt: "0", completion: "0", request: "0", image: "0" },
  prices: {
    prompt: zero,
    completion: zero,
    request: zero,
    image: zero,
    cacheRead: zero,
    cacheWrite: zero,
    reasoning: zero
  },
  markupFactor: { units: 1n, scale: 0 },
  ...fields
})
