import type { PicoUsd } from "#schemas/llm/Money.ts"
import type { Limits } from "#src/Limits.ts"
import type { AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { estimate } from "./Charge.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { RequestFault } from "#src/llm/requests/RequestFault.ts"
import type { Target } from "./Target.ts"
import { estimateTokens } from "./TokenCounter.ts"

/** Tokens of an image, roughly: providers count between 85 and 2,500. */
const imageTokens = 1_500

/** No model takes more, whatever the size of a file. */
const attachedTokensMax = 1_000_000

/** Tokens around a message or tool that are not in its text. */
const framingTokens = 16

/** No tokeniser makes fewer tokens of a text than one of so many characters, long runs of spaces aside. */
const charactersPerTokenMax = 16

export const promptTokensOf = (request: ChatRequest, images: number): number => {
  const attached = Math.min(request.attachedTokens, attachedTokensMax)
  return (
    estimateTokens(request.textLength) +
    attached +
    images * imageTokens +
    request.messageCount * framingTokens
  )
}

/** A text that no model of these can hold is not sent to any. */
export const tooLong = (request: ChatRequest, { primary }: Target): RequestFault | undefined => {
  const contexts = primary.map(({ contextLength }) => contextLength || Infinity)
  const context = Math.max(...contexts)
  const least = Math.floor(request.textLength / charactersPerTokenMax)
  return least > context
    ? new RequestFault(
        "messages",
        `at least ${least} tokens, and the context is ${context} tokens long`,
        "context_length_exceeded"
      )
    : undefined
}

const outputMaxOf = (models: ReadonlyArray<CatalogueModel>, otherwise: number): number =>
  Math.max(
    ...models.map(
      ({ contextLength, maxCompletionTokens }) => maxCompletionTokens ?? (contextLength || otherwise)
    )
  )

/** Output tokens of one choice that are held for at first. Source: decisions, LLM (Charging). */
const outputTokensOf = (
  request: ChatRequest,
  models: ReadonlyArray<CatalogueModel>,
  limits: Limits
): number => {
  if (request.maxTokens !== undefined)
    return Math.min(request.maxTokens, outputMaxOf(models, request.maxTokens))
  if (request.stream) return limits.streamHoldTokens
  return Math.min(limits.plainHoldTokens, outputMaxOf(models, limits.plainHoldTokens))
}

const dearest = (models: ReadonlyArray<CatalogueModel>, cost: (model: CatalogueModel) => PicoUsd): PicoUsd =>
  models.reduce((most, model) => {
    const one = model.isFree ? 0n : cost(model)
    return one > most ? one : most
  }, 0n)

/** What a call asks of the ledger: enough for the dearest model that may come to answer, in every stage. */
export const holdOf = (
  request: ChatRequest,
  { primary, vision }: Target,
  limits: Limits
): Pick<AdmissionAsk, "models" | "promptTokens" | "outputTokens" | "outputTokensMin" | "costOf"> => {
  const isStaged = vision.length > 0
  const images = isStaged ? 0 : request.imageCount
  const described = isStaged ? limits.visionTokens : 0
  const promptTokens = promptTokensOf(request, images) + described
  const visionPrompt = promptTokensOf(request, request.imageCount)
  const visionCost = dearest(vision, (model) => estimate(model, visionPrompt, described, request.imageCount))
  return {
    models: [...primary, ...vision].map(({ id }) => id),
    promptTokens: promptTokens + (isStaged ? visionPrompt + described : 0),
    outputTokens: outputTokensOf(request, primary, limits) * request.choices,
    outputTokensMin: request.choices,
    costOf: remembered(
      (outputTokens) =>
        visionCost + dearest(primary, (model) => estimate(model, promptTokens, outputTokens, images))
    )
  }
}

/** The ledger and the settlement ask about the same number again and again. */
const remembered = (costOf: AdmissionAsk["costOf"]): AdmissionAsk["costOf"] => {
  let last: readonly [tokens: number, cost: PicoUsd] | undefined
  return (outputTokens) => {
    if (last?.[0] !== outputTokens) last = [outputTokens, costOf(outputTokens)]
    return last[1]
  }
}
