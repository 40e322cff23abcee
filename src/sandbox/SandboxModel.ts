import { Predicate } from "effect"
import * as Decimal from "#schemas/llm/Decimal.ts"

/** The behaviour of a model of the sandbox. */
export type Behaviour =
  | "echo"
  | "code"
  | "think"
  | "stall"
  | "empty"
  | "fail"
  | "limit"
  | "limit-silently"
  | "refuse-payment"
  | "break"
  | "no-usage"
  | "no-cost"
  | "embed"

/** USD per token, request and image, exact. */
interface SandboxPrices {
  readonly prompt: Decimal.Decimal
  readonly completion: Decimal.Decimal
  readonly request: Decimal.Decimal
  readonly image: Decimal.Decimal
  /** of prompt tokens read from the cache; undefined if the model has no cache */
  readonly cacheRead: Decimal.Decimal | undefined
  /** of the reasoning tokens among the completion; the completion price if the list has none */
  readonly reasoning: Decimal.Decimal
}

export interface SandboxModel {
  readonly id: string
  readonly behaviour: Behaviour
  /** of every word, if the model has a pace of its own */
  readonly wordMillis: number | undefined
  /** tokens */
  readonly contextLength: number
  /** tokens */
  readonly maxCompletionTokens: number
  readonly seesImages: boolean
  readonly callsTools: boolean
  readonly prices: SandboxPrices
  /** the model as `GET /models` shows it, OpenRouter's shape */
  readonly entry: JsonObject
}

export type JsonObject = { readonly [name: string]: unknown }

export const isJsonObject = (value: unknown): value is JsonObject => Predicate.isReadonlyObject(value)

const textsOf = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : []

/** USD per token of the model that a routing one chooses */
const routedPrice: Decimal.Decimal = { units: 7n, scale: 7 }

const priceOf = (pricing: JsonObject, name: string): Decimal.Decimal | undefined => {
  const text = pricing[name]
  const price = typeof text === "string" ? Decimal.parse(text) : undefined
  // The "-1" of a model that routes is no price: the model that it chooses costs this much.
  return price !== undefined && price.units < 0n ? routedPrice : price
}

const lengthOf = (value: unknown, otherwise: number): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : otherwise

/** A model by its entry in a list; undefined where the entry has no id. */
export const fromEntry = (
  entry: unknown,
  behaviour: Behaviour = "echo",
  wordMillis?: number
): SandboxModel | undefined => {
  if (!isJsonObject(entry) || typeof entry["id"] !== "string" || entry["id"] === "") return undefined
  const pricing = isJsonObject(entry["pricing"]) ? entry["pricing"] : {}
  const architecture = isJsonObject(entry["architecture"]) ? entry["architecture"] : {}
  const provider = isJsonObject(entry["top_provider"]) ? entry["top_provider"] : {}
  const completion = priceOf(pricing, "completion") ?? Decimal.zero
  const reasoning = priceOf(pricing, "internal_reasoning")
  const contextLength = lengthOf(entry["context_length"], 8_192)
  return {
    id: entry["id"],
    behaviour,
    wordMillis,
    contextLength,
    maxCompletionTokens: lengthOf(provider["max_completion_tokens"], contextLength),
    seesImages: textsOf(architecture["input_modalities"]).includes("image"),
    callsTools: textsOf(entry["supported_parameters"]).includes("tools"),
    prices: {
      prompt: priceOf(pricing, "prompt") ?? Decimal.zero,
      completion,
      request: priceOf(pricing, "request") ?? Decimal.zero,
      image: priceOf(pricing, "image") ?? Decimal.zero,
      cacheRead: priceOf(pricing, "input_cache_read"),
      reasoning: reasoning === undefined || reasoning.units === 0n ? completion : reasoning
    },
    entry
  }
}
