import { type PicoUsd, picoOfNumber } from "#schemas/llm/Money.ts"
import type { Limits } from "#src/Limits.ts"
import type { AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { estimate } from "./Charge.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"
import type { Candidates } from "./Candidates.ts"

/** Tokens of an image: most providers count between 85 and 4,800. */
const imageTokens = 5_000

/** The longest context of any model, for models whose list does not tell theirs. */
const contextTokensMax = 2_000_000

/** Tokens around a message that are not in its text. */
const framingTokens = 16

/** Tokens that providers add to every conversation: their own words to the model, and more if it has tools. */
const preambleTokens = 128
const toolPreambleTokens = 896

/** No tokeniser makes fewer tokens of a text than one of so many characters, long runs of spaces aside. */
const charactersPerTokenMax = 16

export const contextOf = ({ contextLength }: Pick<CatalogueModel, "contextLength">): number =>
  contextLength > 0 ? contextLength : contextTokensMax

/**
 * The most tokens that a request can be for a model. A token is a byte of the text at least; the text in a file is
 * known to its reader only, so one holds the whole context. The results of a search are read as well.
 */
export const promptTokensOf = (
  request: ChatRequest,
  images: number,
  model: Pick<CatalogueModel, "contextLength">,
  limits: Pick<Limits, "extraTokens">
): number => {
  const context = contextOf(model)
  if (request.attachments > 0) return context
  const tokens =
    request.textBytes +
    images * imageTokens +
    request.messageCount * framingTokens +
    preambleTokens +
    (request.hasTools ? toolPreambleTokens : 0) +
    request.extras * limits.extraTokens
  return Math.min(tokens, context)
}

/** Pico-USD that the extras of a request hold. */
export const feesOf = ({ extras }: Pick<ChatRequest, "extras">, { extraFeeUsd }: Limits): PicoUsd =>
  extras === 0 ? 0n : BigInt(extras) * (picoOfNumber(extraFeeUsd) ?? 0n)

/** It may think before it says anything, unseen until its usage tells. */
export const mayThink = (
  { asksForThoughts }: Pick<ChatRequest, "asksForThoughts">,
  { supportedParameters }: Pick<CatalogueModel, "supportedParameters">
): boolean => asksForThoughts || supportedParameters.some((name) => thoughtParameters.has(name))

const thoughtParameters = new Set(["reasoning", "include_reasoning", "reasoning_effort"])

/** A text that none of these models can hold is not sent to any. */
export const tooLong = (request: ChatRequest, { primary }: Candidates): RequestFault | undefined => {
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

/** Output tokens of one choice that are held at first. Source: contract/llm#charging. */
const outputTokensOf = (
  request: ChatRequest,
  models: ReadonlyArray<CatalogueModel>,
  limits: Limits
): number => {
  if (request.maxTokens !== undefined)
    return Math.min(request.maxTokens, outputMaxOf(models, request.maxTokens))
  // Reasoning shows too late for a hold that grows with the visible output.
  const isSeen = request.stream && !models.some((model) => mayThink(request, model))
  const first = isSeen ? limits.streamHoldTokens : limits.plainHoldTokens
  return Math.min(first, outputMaxOf(models, first))
}

const dearest = (models: ReadonlyArray<CatalogueModel>, cost: (model: CatalogueModel) => PicoUsd): PicoUsd =>
  models.reduce((most, model) => {
    const one = model.isFree ? 0n : cost(model)
    return one > most ? one : most
  }, 0n)

/** A call's ask to the ledger: enough for the dearest model that may come to answer, in every stage. */
export const holdOf = (request: ChatRequest, { primary, vision }: Candidates, limits: Limits): Held => {
  const isStaged = vision.length > 0
  const images = isStaged ? 0 : request.imageCount
  const described = isStaged ? limits.visionTokens : 0
  const promptOf = (model: CatalogueModel) => promptTokensOf(request, images, model, limits) + described
  const visionPromptOf = (model: CatalogueModel) => promptTokensOf(request, request.imageCount, model, limits)
  const visionCost = dearest(vision, (model) =>
    estimate(model, visionPromptOf(model), described, request.imageCount)
  )
  const fees = feesOf(request, limits) * (isStaged ? 2n : 1n)
  const promptTokens = Math.max(...primary.map(promptOf))
  const outputTokens = outputTokensOf(request, primary, limits) * request.choices
  return {
    models: [...primary, ...vision].map(({ id }) => id),
    promptTokens: promptTokens + (isStaged ? Math.max(...vision.map(visionPromptOf)) + described : 0),
    outputTokens,
    outputTokensMin: Math.min(request.choices, outputTokens),
    growsTo:
      request.maxTokens === undefined
        ? Math.max(outputTokens, outputMaxOf(primary, contextTokensMax) * request.choices)
        : undefined,
    hasFees: fees > 0n,
    costOf: remembered(
      (tokens) =>
        visionCost + fees + dearest(primary, (model) => estimate(model, promptOf(model), tokens, images))
    )
  }
}

type Held = Pick<
  AdmissionAsk,
  "models" | "promptTokens" | "outputTokens" | "outputTokensMin" | "growsTo" | "hasFees" | "costOf"
>

/** The ledger and the settlement ask for the same number again and again. */
const remembered = (costOf: AdmissionAsk["costOf"]): AdmissionAsk["costOf"] => {
  let last: readonly [tokens: number, cost: PicoUsd] | undefined
  return (outputTokens) => {
    if (last?.[0] !== outputTokens) last = [outputTokens, costOf(outputTokens)]
    return last[1]
  }
}
