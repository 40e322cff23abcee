import { Effect } from "effect"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { readUsage, type UpstreamUsage, withoutCost } from "#streams/llm/UpstreamUsage.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { estimateTokens, type TokenCounter } from "./TokenCounter.ts"

const promptTokensOf = (
  counter: TokenCounter["Service"],
  { source, textLength }: ChatRequest
): Effect.Effect<number> => {
  const text = source.text()
  return text === undefined ? Effect.succeed(estimateTokens(textLength)) : counter.count(text)
}

/** The tokens of a call whose upstream does not say them, or says what cannot be. */
export const countedUsage = (
  counter: TokenCounter["Service"],
  request: ChatRequest,
  output: { readonly text: string; readonly factor: number }
): Effect.Effect<UpstreamUsage> =>
  Effect.gen(function* () {
    const promptTokens = yield* promptTokensOf(counter, request)
    const completionTokens = Math.ceil((yield* counter.count(output.text)) * output.factor)
    return {
      promptTokens,
      completionTokens,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      cost: undefined
    }
  })

/** Tokens beyond what was asked for or fits: thoughts that are not counted in `max_tokens`, a context that has grown. */
const toleranceFactor = 2
const toleranceTokens = 4_096

/** More than the model can take in or was let say is a lie or a mistake, and would be charged. */
const isPlausible = (
  { completionTokens, promptTokens }: UpstreamUsage,
  { choices, maxTokens = Infinity }: Pick<ChatRequest, "choices" | "maxTokens">,
  { contextLength, maxCompletionTokens }: CatalogueModel
): boolean => {
  const context = contextLength > 0 ? contextLength : Infinity
  const most = Math.min(maxTokens, maxCompletionTokens ?? context)
  return (
    promptTokens <= context * toleranceFactor + toleranceTokens &&
    completionTokens <= (most * toleranceFactor + toleranceTokens) * choices
  )
}

/** The upstream's usage where there is one that can be true, else what is counted here. */
export const usageOf = (
  counter: TokenCounter["Service"],
  request: ChatRequest,
  model: CatalogueModel,
  reported: unknown,
  output: () => { readonly text: string; readonly factor: number }
): Effect.Effect<UpstreamUsage> => {
  const usage = readUsage(reported)
  return usage === undefined || !isPlausible(usage, request, model)
    ? countedUsage(counter, request, output())
    : Effect.succeed(usage)
}

/** What the answer says of its usage: the last model's own words without its cost, unless they are not all of it. */
export const usageObject = (
  { completionTokens, promptTokens }: Pick<UpstreamUsage, "promptTokens" | "completionTokens">,
  reported: unknown
): JsonRecord => {
  const told = readUsage(reported)
  const isTold = told?.promptTokens === promptTokens && told.completionTokens === completionTokens
  return isJsonRecord(reported) && isTold
    ? withoutCost(reported)
    : {
        prompt_tokens: promptTokens,
        completion_tokens: completionTokens,
        total_tokens: promptTokens + completionTokens
      }
}
