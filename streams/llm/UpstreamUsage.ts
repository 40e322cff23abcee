import * as Decimal from "#schemas/llm/Decimal.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

/** A call's usage as the upstream reports it. Source: OpenAI and OpenRouter, usage object. */
export interface UpstreamUsage {
  readonly promptTokens: number
  readonly completionTokens: number
  /** among the prompt tokens, read from a cache */
  readonly cachedTokens: number
  /** among the prompt tokens, written to a cache */
  readonly cacheWriteTokens: number
  /** among the completion tokens */
  readonly reasoningTokens: number
  /** USD, where the upstream says it */
  readonly cost: Decimal.Decimal | undefined
}

/** Above it an upstream is wrong, or lies. */
const tokensMax = 1_000_000_000

const tokensOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= tokensMax ? value : undefined

/** Undefined where there is no usage in it that can be true: then the tokens are counted here. */
export const readUsage = (value: unknown): UpstreamUsage | undefined => {
  if (!isJsonRecord(value)) return undefined
  const promptTokens = tokensOf(value["prompt_tokens"])
  // Embeddings have prompt tokens only.
  const completionTokens = tokensOf(value["completion_tokens"] ?? 0)
  if (promptTokens === undefined || completionTokens === undefined) return undefined
  const promptDetails = isJsonRecord(value["prompt_tokens_details"]) ? value["prompt_tokens_details"] : {}
  const outputDetails = isJsonRecord(value["completion_tokens_details"])
    ? value["completion_tokens_details"]
    : {}
  const cached = Math.min(tokensOf(promptDetails["cached_tokens"]) ?? 0, promptTokens)
  const thought = tokensOf(outputDetails["reasoning_tokens"]) ?? 0
  const output = isBeside(thought, completionTokens, promptTokens, value["total_tokens"])
    ? completionTokens + thought
    : completionTokens
  return {
    promptTokens,
    completionTokens: output,
    cachedTokens: cached,
    cacheWriteTokens: Math.min(tokensOf(promptDetails["cache_write_tokens"]) ?? 0, promptTokens - cached),
    reasoningTokens: Math.min(thought, output),
    // With a key of the caller's own at the upstream, its charge is a fee, and the tokens are paid elsewhere.
    cost: value["is_byok"] === true ? undefined : costOf(value["cost"])
  }
}

/** Some, like xAI, count thoughts beside the completion and not in it; the total, or that there are more of them, says so. */
const isBeside = (thought: number, completion: number, prompt: number, total: unknown): boolean =>
  thought > completion || (thought > 0 && total === prompt + completion + thought)

const costOf = (value: unknown): Decimal.Decimal | undefined => {
  const cost = typeof value === "number" ? Decimal.fromNumber(value) : undefined
  return cost === undefined || cost.units < 0n ? undefined : cost
}

const costFields = new Set(["cost", "cost_details", "is_byok"])

/** The usage object without the upstream's charge, which is internal to the platform. */
export const withoutCost = (usage: JsonRecord): JsonRecord => strip(usage, true, 1)

/**
 * A chunk or an answer without what the upstream charges: beside the choices, and in every usage object in it, as some
 * have one in each choice or in a field of their own. The same object where there is nothing of it.
 */
export const withoutCosts = (json: JsonRecord): JsonRecord => strip(json, true, levels)

/** The depth of nested objects that are searched: usage is in the upper ones. */
const levels = 6

/** @param isUsage its own fields may be costs */
const strip = (json: JsonRecord, isUsage: boolean, depth: number): JsonRecord => {
  let own: Record<string, unknown> | undefined
  for (const name of Object.keys(json)) {
    const value = json[name]
    if (isUsage && costFields.has(name)) delete (own ??= { ...json })[name]
    else if (depth > 1 && typeof value === "object" && value !== null) {
      const kept = stripAny(value, name === "usage", depth - 1)
      if (kept !== value) (own ??= { ...json })[name] = kept
    }
  }
  return own ?? json
}

const stripAny = (value: object, isUsage: boolean, depth: number): unknown => {
  if (!Array.isArray(value)) return isJsonRecord(value) ? strip(value, isUsage, depth) : value
  let kept: Array<unknown> | undefined
  for (const [index, one] of value.entries()) {
    const stripped = isJsonRecord(one) ? strip(one, isUsage, depth) : one
    if (stripped !== one) (kept ??= [...value])[index] = stripped
  }
  return kept ?? value
}
