import { Effect } from "effect"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { readUsage, type UpstreamUsage, withoutCost } from "#streams/llm/UpstreamUsage.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import type { EstimateReason } from "#streams/llm/CallRecord.ts"
import type { Limits } from "#src/Limits.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import type { CallParts } from "./CallParts.ts"
import type { Measured } from "./CallTally.ts"
import { contextOf, promptTokensOf } from "./Estimate.ts"
import type { Soon } from "./Soon.ts"
import { estimateTokens, type TokenCounter } from "./TokenCounter.ts"

/** Of the request's text; one that is too long to be counted is estimated. */
const countedPrompt = (
  counter: TokenCounter["Service"],
  { source, textLength }: ChatRequest
): Effect.Effect<number> => {
  const text = source.text()
  return text === undefined ? Effect.succeed(estimateTokens(textLength)) : counter.count(text)
}

/** The output as text; `factor`: the whole output as a multiple of the text. */
export interface Output {
  readonly text: string
  readonly factor: number
}

export const tokensOnly = (promptTokens: number, completionTokens: number): UpstreamUsage => ({
  promptTokens,
  completionTokens,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  cost: undefined
})

/** The tokens of a call whose upstream sends none, or impossible ones. */
export const countedUsage = (
  counter: TokenCounter["Service"],
  request: ChatRequest,
  output: Output
): Effect.Effect<UpstreamUsage> =>
  Effect.gen(function* () {
    const promptTokens = yield* countedPrompt(counter, request)
    const completionTokens = Math.ceil((yield* counter.count(output.text)) * output.factor)
    return tokensOnly(promptTokens, completionTokens)
  })

/** Tokens beyond the request: thoughts that are not counted in `max_tokens`, a template around the conversation. */
const toleranceFactor = 2
const toleranceTokens = 4_096

/**
 * More than was sent, or than the model was allowed, is a lie or a mistake, and would be charged; so is nothing for an
 * input.
 */
const isPlausible = (
  { completionTokens, promptTokens }: UpstreamUsage,
  request: ChatRequest,
  model: CatalogueModel,
  limits: Limits,
  output: () => Output
): boolean => {
  const { choices, imageCount, maxTokens = Infinity, textBytes } = request
  const sent = promptTokensOf(request, imageCount, model, limits) + limits.visionTokens
  const most = Math.min(maxTokens, model.maxCompletionTokens ?? contextOf(model))
  return (
    promptTokens <= sent + toleranceTokens &&
    completionTokens <= (most * toleranceFactor + toleranceTokens) * choices &&
    (promptTokens > 0 || textBytes === 0) &&
    (completionTokens > 0 || output().text === "")
  )
}

/** The upstream's usage if there is one that can be true, else a count of its own. */
export const usageOf = (
  { counter, limits }: Pick<CallParts, "counter" | "limits">,
  request: ChatRequest,
  model: CatalogueModel,
  reported: unknown,
  output: () => Output
): Soon<Measured> => {
  const told = believed(limits, request, model, reported, output)
  return "usage" in told
    ? told
    : Effect.map(countedUsage(counter, request, output()), (usage) => ({ usage, doubt: told.doubt }))
}

/** The upstream's usage, or the reason why it does not count. */
export const believed = (
  limits: Limits,
  request: ChatRequest,
  model: CatalogueModel,
  reported: unknown,
  output: () => Output
): Measured | { readonly doubt: EstimateReason } => {
  const usage = readUsage(reported)
  if (usage === undefined) return { doubt: isJsonRecord(reported) ? "usage_out_of_bounds" : "no_usage" }
  return isPlausible(usage, request, model, limits, output)
    ? { usage, doubt: doubtOfCost(reported, usage) }
    : { doubt: "usage_out_of_bounds" }
}

/** The reported cost is no number of dollars, or higher than any call's has ever been. */
const doubtOfCost = (reported: unknown, { cost }: UpstreamUsage): EstimateReason | undefined => {
  if (!isJsonRecord(reported) || cost !== undefined || reported["is_byok"] === true) return undefined
  return reported["cost"] === undefined || reported["cost"] === null ? undefined : "cost_out_of_bounds"
}

/** The answer's usage: the last model's own words without its cost, unless they are not all of it. */
export const usageObject = (
  { completionTokens, promptTokens }: Pick<UpstreamUsage, "promptTokens" | "completionTokens">,
  reported: unknown
): JsonRecord => {
  const told = readUsage(reported)
  const isTold = told?.promptTokens === promptTokens && told.completionTokens === completionTokens
  return {
    ...(isJsonRecord(reported) && isTold ? withoutCost(reported) : {}),
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    // Some upstreams leave it out, or count in another way.
    total_tokens: promptTokens + completionTokens
  }
}
