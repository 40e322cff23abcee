import { Effect, Fiber, Layer } from "effect"
import { type ModelAnswer, type ModelAsk, ModelCalls, type Said } from "#actors/agents/ModelCalls.ts"
import type { AgentErrorCode } from "#schemas/agents/ServerFrame.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { type CallRecord, nothingDrawn } from "#streams/llm/CallRecord.ts"
import { tokensOfText } from "#streams/agents/ChatContext.ts"
import { Keys } from "#src/accounts/Keys.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { CallFault } from "#src/llm/calls/CallFault.ts"
import { Client } from "#src/llm/calls/Client.ts"
import { Completions } from "#src/llm/calls/Completions.ts"
import { Catalogue } from "#src/llm/catalogue/Catalogue.ts"
import { readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { RequestFault } from "#src/llm/requests/RequestFault.ts"
import { AgentOffer } from "../AgentOffer.ts"
import { PromptImages } from "./PromptImages.ts"
import { SpokenAnswer } from "./SpokenAnswer.ts"
import { toolDefinitions } from "./ToolDefinitions.ts"

/** Fewer tokens than these are no answer: a budget that pays for less is used up. */
const outputTokensMin = 64

/**
 * The model calls of agents, through the router's own completions in this process: priced, metered and settled as every
 * other call, with source `agent`.
 */
export const layer = Layer.effect(
  ModelCalls,
  Effect.gen(function* () {
    const completions = yield* Completions
    const keys = yield* Keys
    const offer = yield* AgentOffer
    const catalogue = yield* Catalogue
    const images = yield* PromptImages
    const scope = yield* Effect.scope

    const make = Effect.fnUntraced(function* (ask: ModelAsk, key: Principal, client: Client) {
      const maxTokens = affordable(ask, catalogue)
      if (maxTokens !== undefined && maxTokens < outputTokensMin) return overBudget
      const messages = yield* images.filled(ask.messages)
      const request = readChatRequest(bodyOf({ ...ask, messages }, catalogue, maxTokens))
      if (request instanceof RequestFault) return failure("internal", `${request.param}: ${request.problem}`)
      const answer = new SpokenAnswer(ask.onDelta)
      let record: CallRecord | undefined
      const fault = yield* completions.complete({
        id: newId("req"),
        key,
        source: "agent",
        request,
        client,
        sink: { json: () => undefined, stream: () => answer, brokeOff: () => undefined },
        startedAt: Date.now(),
        onRecord: (written) => {
          record = written
        }
      })
      return fault === undefined ? answerOf(ask, answer, record, client.isGone) : faultAnswer(fault)
    })

    return ModelCalls.of({
      call: (ask) =>
        Effect.gen(function* () {
          const key = keys.holder(ask.keyId)
          if (key === undefined) return failure("model_forbidden", "The session's key is not valid any more")
          const leaving = new AbortController()
          const client = new Client({ onAbort: (listener) => onAbort(leaving.signal, listener) })
          const leave = () => leaving.abort()
          ask.signal.addEventListener("abort", leave, { once: true })
          if (ask.signal.aborted) leave()
          // A call that was begun is settled, whatever becomes of who asked.
          const fiber = yield* Effect.forkIn(make(ask, key, client), scope)
          return yield* Fiber.join(fiber).pipe(
            Effect.onInterrupt(() => Effect.sync(leave)),
            Effect.ensuring(Effect.sync(() => ask.signal.removeEventListener("abort", leave)))
          )
        }),
      contextLength: (_userId, keyId, model) => {
        const key = keys.holder(keyId)
        const known = key === undefined ? "unknown" : offer.modelOf(key, model)
        return typeof known === "string" || known.context_length === 0 ? undefined : known.context_length
      }
    })
  })
)

const onAbort = (signal: AbortSignal, listener: () => void): void => {
  if (signal.aborted) listener()
  else signal.addEventListener("abort", listener, { once: true })
}

const bodyOf = (
  { messages, model, thinkingLevel, withTools }: ModelAsk,
  catalogue: Catalogue["Service"],
  maxTokens: number | undefined
) => {
  const known = catalogue.get(model)
  const mayThink = known === undefined || known.supportedParameters.includes("reasoning")
  return {
    model,
    messages,
    stream: true,
    ...(withTools ? { tools: toolDefinitions } : {}),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(mayThink
      ? { reasoning: thinkingLevel === "off" ? { enabled: false } : { effort: thinkingLevel } }
      : {})
  }
}

/** Output tokens that what is left of the budget pays for; undefined: there is no budget, or no price. */
const affordable = (
  { budgetLeft, messages, model, withTools }: ModelAsk,
  catalogue: Catalogue["Service"]
): number | undefined => {
  if (budgetLeft === undefined) return undefined
  const prices = catalogue.get(model)?.prices
  if (prices === undefined) return budgetLeft > 0n ? undefined : 0
  const promptTokens = tokensOfText(JSON.stringify([messages, withTools ? toolDefinitions : []]))
  const left = Number(budgetLeft) - promptTokens * picoPerToken(prices.prompt)
  const perToken = picoPerToken(prices.completion)
  if (left <= 0) return 0
  const tokens = perToken === 0 ? undefined : Math.floor(left / perToken)
  const most = catalogue.get(model)?.maxCompletionTokens ?? Infinity
  return tokens === undefined || tokens >= Math.min(most, 1_000_000) ? undefined : tokens
}

const picoPerToken = (price: Decimal.Decimal): number => Number(Decimal.format(price)) * 1e12

const overBudget: ModelAnswer = { _tag: "OverBudget" }

const answerOf = (
  { callId, model }: ModelAsk,
  answer: SpokenAnswer,
  record: CallRecord | undefined,
  isGone: boolean
): ModelAnswer => {
  const { charge, covered } = record?.settlement ?? nothingDrawn
  const promptTokens = record?.promptTokens ?? 0
  const completionTokens = record?.completionTokens ?? 0
  const isWhole = !isGone && answer.problem === undefined
  const said: Said = {
    model: record === undefined || record.resolved === "" ? model : record.resolved,
    content: answer.content(callId, isWhole),
    stopReason: isGone ? "aborted" : stopReasonOf(answer),
    usage: { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
    cost: BigInt(charge),
    covered
  }
  if (isGone) return { _tag: "Aborted", said }
  if (answer.problem !== undefined) return failure("upstream_error", answer.problem, true)
  return { _tag: "Answered", said, isCutByCredits: answer.isCutByCredits }
}

/** Some models say `stop` and call tools all the same. */
const stopReasonOf = ({ finishReason, hasCalls }: SpokenAnswer): Said["stopReason"] => {
  if (finishReason === "length") return "length"
  return hasCalls ? "tool_calls" : "stop"
}

const failure = (
  code: AgentErrorCode,
  message: string,
  isPassing = false,
  retryAfterMillis?: number
): ModelAnswer => ({ _tag: "Failed", code, message, isPassing, retryAfterMillis })

const faultAnswer = ({ code, message, retryAfterSeconds, shouldRetry, status }: CallFault): ModelAnswer => {
  const retry = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000
  if (code === "context_length_exceeded") return failure("context_overflow", message)
  if (status === 402) return failure("insufficient_credits", message, shouldRetry === true, retry)
  if (status === 429) return failure("rate_limited", message, true, retry)
  if (status === 403 || status === 404) return failure("model_forbidden", message)
  if (status === 503) return failure("overloaded", message, true, retry)
  return failure("upstream_error", message, status >= 500, retry)
}
