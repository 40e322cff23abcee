import { Effect } from "effect"
import { isJsonRecord, type JsonRecord } from "#streams/llm/JsonRecord.ts"
import { readUsage, type UpstreamUsage, withoutCost } from "#streams/llm/UpstreamUsage.ts"
import type { ChatRequest } from "./ChatRequest.ts"
import type { TokenCounter } from "./TokenCounter.ts"

/** The text of a request, as far as it is text. */
const promptText = (request: ChatRequest): string => {
  const messages = Array.isArray(request.body["messages"]) ? request.body["messages"] : []
  return messages.map((message) => (isJsonRecord(message) ? textIn(message["content"]) : "")).join("\n")
}

const textIn = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content
    .map((part) => (isJsonRecord(part) && typeof part["text"] === "string" ? part["text"] : ""))
    .join("\n")
}

/** The tokens of a call whose upstream does not say them, or says what cannot be. */
export const countedUsage = (
  counter: TokenCounter["Service"],
  request: ChatRequest,
  output: { readonly text: string; readonly factor: number }
): Effect.Effect<UpstreamUsage> =>
  Effect.gen(function* () {
    const promptTokens = yield* counter.count(promptText(request))
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

/** The upstream's usage where there is one that can be true, else what is counted here. */
export const usageOf = (
  counter: TokenCounter["Service"],
  request: ChatRequest,
  reported: unknown,
  output: () => { readonly text: string; readonly factor: number }
): Effect.Effect<UpstreamUsage> => {
  const usage = readUsage(reported)
  return usage === undefined ? countedUsage(counter, request, output()) : Effect.succeed(usage)
}

/** What the answer says of its usage: the upstream's own words without its cost, else what was counted. */
export const usageObject = (usage: UpstreamUsage, reported: unknown): JsonRecord =>
  isJsonRecord(reported) && readUsage(reported) !== undefined
    ? withoutCost(reported)
    : {
        prompt_tokens: usage.promptTokens,
        completion_tokens: usage.completionTokens,
        total_tokens: usage.promptTokens + usage.completionTokens
      }
