import { Effect, Layer, Schema } from "effect"
import { type ModelAnswer, type ModelAsk, ModelCalls, type ModelMessage } from "#actors/agents/ModelCalls.ts"
import type { AgentErrorCode } from "#schemas/agents/ServerFrame.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { Credentials } from "#src/accounts/Credentials.ts"
import { ModelAccess } from "#src/llm/ModelAccess.ts"
import { InProcessCalls, type InProcessOutcome } from "#src/llm/InProcessCalls.ts"
import { tokensOfText } from "#streams/agents/ChatContext.ts"
import { makePromptImages } from "./PromptImages.ts"
import { SpokenAnswer } from "./SpokenAnswer.ts"
import { tools } from "#schemas/agents/ToolCall.ts"

/** The tools as chat-completions names them. */
const toolDefinitions: ReadonlyArray<unknown> = tools.map(({ description, name, params }) => ({
  type: "function",
  function: { name, description, parameters: parametersOf(params) }
}))

function parametersOf(params: Schema.Top): unknown {
  const { definitions, schema } = Schema.toJsonSchemaDocument(params)
  return Object.keys(definitions).length === 0 ? schema : { ...schema, $defs: definitions }
}

/** Fewer tokens than these are no answer: a budget that pays for less counts as used up. */
const outputTokensMin = 64

/** The model calls of agents, through the router of this process: priced, metered and settled, with source `agent`. */
export const layer = Layer.effect(
  ModelCalls,
  Effect.gen(function* () {
    const router = yield* InProcessCalls
    const credentials = yield* Credentials
    const offer = yield* ModelAccess
    const withImages = yield* makePromptImages

    const call = Effect.fnUntraced(function* (ask: ModelAsk, key: Principal) {
      const maxTokens = boundOf(offer, ask, key)
      if (maxTokens !== undefined && maxTokens < outputTokensMin) return overBudget
      const messages = yield* withImages(ask.messages, offer.seesImages(key, ask.model))
      const answer = new SpokenAnswer(ask.onDelta)
      const outcome = yield* router.call({
        key,
        source: "agent",
        body: bodyOf({ ...ask, messages }, offer.mayThink(ask.model), maxTokens),
        onChunk: (chunk) => answer.take(chunk),
        signal: ask.signal
      })
      return answerOf(ask, answer, outcome)
    })

    return ModelCalls.of({
      call: (ask) => {
        const key = credentials.holder(ask.keyId)
        return key === undefined
          ? Effect.succeed(failure("model_forbidden", "The session's key is not valid any more"))
          : call(ask, key)
      },
      contextLength: (keyId, model) => {
        const key = credentials.holder(keyId)
        const known = key === undefined ? "unknown" : offer.modelOf(key, model)
        return typeof known === "string" || known.context_length === 0 ? undefined : known.context_length
      }
    })
  })
)

const boundOf = (
  offer: ModelAccess["Service"],
  { budgetLeft, messages, model, withTools }: ModelAsk,
  key: Principal
): number | undefined => {
  if (budgetLeft === undefined) return undefined
  const promptTokens = tokensOfText(JSON.stringify([messages, withTools ? toolDefinitions : []]))
  return offer.affordable(key, model, promptTokens, budgetLeft)
}

const bodyOf = (
  { messages, model, thinkingLevel, withTools }: ModelAsk,
  mayThink: boolean,
  maxTokens: number | undefined
) => ({
  model,
  messages,
  stream: true,
  ...(withTools ? { tools: toolDefinitions } : {}),
  ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
  ...(mayThink ? { reasoning: thinkingLevel === "off" ? { enabled: false } : { effort: thinkingLevel } } : {})
})

const overBudget: ModelAnswer = { _tag: "OverBudget" }

const answerOf = (
  { callId, model }: ModelAsk,
  answer: SpokenAnswer,
  outcome: InProcessOutcome
): ModelAnswer => {
  const { charge, completionTokens, covered, fault, isCutByCredits, isGone, problem, promptTokens } = outcome
  if (fault !== undefined && !isGone) return faultAnswer(fault)
  const said: ModelMessage = {
    model: outcome.resolved === "" ? model : outcome.resolved,
    content: answer.content(callId, !isGone && problem === undefined),
    stopReason: isGone ? "aborted" : stopReasonOf(answer),
    usage: { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
    cost: charge,
    covered
  }
  if (isGone) return { _tag: "Aborted", said }
  if (problem !== undefined) return failure("upstream_error", problem, true)
  return { _tag: "Answered", said, isCutByCredits }
}

/** Some models send `stop` and call tools all the same. */
const stopReasonOf = ({ finishReason, hasCalls }: SpokenAnswer): ModelMessage["stopReason"] => {
  if (finishReason === "length") return "length"
  return hasCalls ? "tool_calls" : "stop"
}

const failure = (
  code: AgentErrorCode,
  message: string,
  isPassing = false,
  retryAfterMillis?: number
): ModelAnswer => ({ _tag: "Failed", code, message, isPassing, retryAfterMillis })

const faultAnswer = ({
  code,
  message,
  retryAfterSeconds,
  shouldRetry,
  status
}: NonNullable<InProcessOutcome["fault"]>): ModelAnswer => {
  const retry = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000
  if (code === "context_length_exceeded") return failure("context_overflow", message)
  if (status === 402) return failure("insufficient_credits", message, shouldRetry === true, retry)
  if (status === 429) return failure("rate_limited", message, true, retry)
  if (status === 403 || status === 404) return failure("model_forbidden", message)
  if (status === 503) return failure("overloaded", message, true, retry)
  return failure("upstream_error", message, status >= 500, retry)
}
