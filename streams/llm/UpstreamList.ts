import { Predicate, Result } from "effect"
import { mendedJson } from "#schemas/core/JsonFitness.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"

/** A model as the upstream's list has it: its own prices, without a markup. */
export interface ListedModel {
  readonly id: string
  readonly name: string
  readonly description: string
  /** epoch seconds; 0 where the list does not say */
  readonly created: number
  /** tokens; 0 where the list does not say */
  readonly contextLength: number
  readonly maxCompletionTokens: number | null
  readonly inputModalities: ReadonlyArray<string>
  /** the list does not say what it takes: text is what all do */
  readonly takesAnything?: boolean
  readonly outputModalities: ReadonlyArray<string>
  readonly supportedParameters: ReadonlyArray<string>
  readonly pricing: ListedPricing
}

/** USD per token, per request, per image. */
export interface ListedPrices {
  readonly prompt: Decimal.Decimal
  readonly completion: Decimal.Decimal
  readonly request: Decimal.Decimal
  readonly image: Decimal.Decimal
  readonly cacheRead: Decimal.Decimal | undefined
  readonly cacheWrite: Decimal.Decimal | undefined
  readonly reasoning: Decimal.Decimal | undefined
}

interface ListedPricing extends ListedPrices {
  /** the prices of calls with prompts of at least so many tokens, shortest first */
  readonly longPrompts: ReadonlyArray<{ readonly minPromptTokens: number; readonly prices: ListedPrices }>
  /** one of the four that the contract shows is -1: the model routes, and its cost is known afterwards */
  readonly isRouted: boolean
  /** every price of the list is 0, those that the contract does not show as well */
  readonly isFree: boolean
}

/** The result of reading an upstream's list. */
export interface UpstreamList {
  /** in the upstream's order */
  readonly models: ReadonlyArray<ListedModel>
  /** models that make no sense, or whose id came twice */
  readonly leftOut: number
  /** the fault of the first of them */
  readonly firstFault: string | undefined
}

/**
 * Reads the body of `GET /models` of an OpenRouter-shaped upstream. The failure says why the list as a whole is of no
 * use: no JSON, no `data`, nothing in it, or more that makes no sense than that does.
 */
export const readUpstreamList = (text: string): Result.Result<UpstreamList, string> => {
  const parsed = Result.try(() => mendedJson(JSON.parse(text)))
  if (Result.isFailure(parsed)) return Result.fail("the list is not JSON")
  const body = parsed.success
  if (!Predicate.hasProperty(body, "data") || !Array.isArray(body.data)) {
    return Result.fail("the list has no data array")
  }
  const entries: ReadonlyArray<unknown> = body.data
  if (entries.length === 0) return Result.fail("the list is empty")
  const models = new Map<string, ListedModel>()
  let firstFault: string | undefined
  for (const [index, entry] of entries.entries()) {
    const read = readModel(entry)
    const fault = Result.isFailure(read)
      ? read.failure
      : models.has(read.success.id)
        ? "its id came before"
        : undefined
    if (Result.isSuccess(read) && fault === undefined) models.set(read.success.id, read.success)
    else firstFault ??= `data[${index}]: ${fault}`
  }
  const leftOut = entries.length - models.size
  return leftOut > models.size
    ? Result.fail(`${leftOut} of the list's ${entries.length} models make no sense; ${firstFault}`)
    : Result.succeed({ models: [...models.values()], leftOut, firstFault })
}

/** Printable, without spaces: an id is part of paths, and of the names that people type. */
const idForm = /^[^\s\p{C}]{1,200}$/u

/** Ids with this prefix are those of collections. Source: contract/llm#models-list. */
const collectionPrefix = "collection/"

const readModel = (entry: unknown): Result.Result<ListedModel, string> => {
  if (!Predicate.isObject(entry)) return Result.fail("no object")
  const { architecture, id, pricing, top_provider: provider } = entry as Fields
  if (!Predicate.isString(id) || !idForm.test(id) || id.startsWith(collectionPrefix)) {
    return Result.fail("no usable id")
  }
  const prices = readPricing(pricing)
  if (Result.isFailure(prices)) return Result.fail(`${id}: ${prices.failure}`)
  const { input_modalities: input, output_modalities: output } = fieldsOf(architecture)
  const { context_length: providerContext, max_completion_tokens: completion } = fieldsOf(provider)
  const { context_length: context, created, description, name, supported_parameters } = entry as Fields
  return Result.succeed({
    id,
    name: textOf(name, nameLengthMax) || id,
    description: textOf(description, descriptionLengthMax),
    created: countOf(created, epochSecondsMax) ?? 0,
    contextLength: countOf(context) ?? countOf(providerContext) ?? 0,
    maxCompletionTokens: countOf(completion) || null,
    inputModalities: wordsOf(input) ?? ["text"],
    ...(wordsOf(input) === undefined ? { takesAnything: true } : {}),
    outputModalities: wordsOf(output) ?? ["text"],
    supportedParameters: wordsOf(supported_parameters) ?? [],
    pricing: prices.success
  })
}

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields => (Predicate.isObject(value) ? (value as Fields) : {})

/** Characters of a name, of a description and of one word of a list, and words: real lists have a tenth of each. */
const nameLengthMax = 300
const descriptionLengthMax = 20_000
const wordLengthMax = 100
const wordsMax = 200

/** Control characters, NUL above all, are nothing that a list of models is to show; line breaks of a text may stay. */
const textOf = (value: unknown, lengthMax: number): string =>
  Predicate.isString(value)
    ? value
        // oxlint-disable-next-line no-control-regex
        .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, "")
        .slice(0, lengthMax)
        .toWellFormed()
    : ""

/** Tokens beyond any context, and seconds beyond the year 9999, are mistakes: no more is known then. */
const tokensMax = 1_000_000_000
const epochSecondsMax = 253_402_300_799

const countOf = (value: unknown, max = tokensMax): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= max ? Number(value) : undefined

const wordsOf = (value: unknown): ReadonlyArray<string> | undefined =>
  Array.isArray(value)
    ? value.filter((word) => Predicate.isString(word) && word.length <= wordLengthMax).slice(0, wordsMax)
    : undefined

/** USD per token, per request or per image above which a price is a mistake: the dearest token today costs 0.0006. */
const priceMax: Decimal.Decimal = { units: 1_000n, scale: 0 }

const routed: Decimal.Decimal = { units: -1n, scale: 0 }

/** Not a price but a share that prices already have in them. */
const discount = "discount"

/** Prices instead of the base ones under a condition: a list of objects. */
const overrides = "overrides"

const minPromptTokens = "min_prompt_tokens"

/** The fields of an override of long prompts alone; another field may be a further condition. */
const overrideFields = new Set([
  minPromptTokens,
  "prompt",
  "completion",
  "request",
  "image",
  "audio",
  "web_search",
  "input_cache_read",
  "input_cache_write",
  "input_cache_write_1h",
  "internal_reasoning"
])

/** By name; the failure is the name of one that is no price. */
const readPrices = (fields: Fields): Result.Result<ReadonlyMap<string, Decimal.Decimal>, string> => {
  const prices = new Map<string, Decimal.Decimal>()
  for (const [name, value] of Object.entries(fields)) {
    if (name === discount || name === overrides || name === minPromptTokens || value === null) continue
    const price = readPrice(value)
    if (price === undefined) return Result.fail(name)
    prices.set(name, price)
  }
  return Result.succeed(prices)
}

const readPricing = (pricing: unknown): Result.Result<ListedPricing, string> => {
  if (!Predicate.isObject(pricing)) return Result.fail("no pricing")
  const fields = pricing as Fields
  const read = readPrices(fields)
  if (Result.isFailure(read)) return Result.fail(`pricing.${read.failure} is no price`)
  const prices = read.success
  const base = pricesOf(prices)
  if (base === undefined) return Result.fail("no price of tokens")
  const longPrompts = longPromptsOf(fields[overrides], prices)
  const all = [...prices.values(), ...longPrompts.flatMap(({ prices }) => [prices.prompt, prices.completion])]
  return Result.succeed({
    ...base,
    longPrompts,
    isRouted: [base.prompt, base.completion, base.request, base.image].some(({ units }) => units < 0n),
    isFree: all.every(({ units }) => units === 0n)
  })
}

const pricesOf = (prices: ReadonlyMap<string, Decimal.Decimal>): ListedPrices | undefined => {
  const prompt = prices.get("prompt")
  const completion = prices.get("completion")
  if (prompt === undefined || completion === undefined) return undefined
  return {
    prompt,
    completion,
    request: prices.get("request") ?? Decimal.zero,
    image: prices.get("image") ?? Decimal.zero,
    cacheRead: prices.get("input_cache_read"),
    cacheWrite: prices.get("input_cache_write"),
    reasoning: prices.get("internal_reasoning")
  }
}

/**
 * Prices of long prompts; prices missing from an entry stay as they are. Entries with another condition, such as an
 * hour of the day, are passed over: the upstream reports the cost of such a call itself.
 */
const longPromptsOf = (
  entries: unknown,
  base: ReadonlyMap<string, Decimal.Decimal>
): ListedPricing["longPrompts"] => {
  if (!Array.isArray(entries)) return []
  return entries
    .flatMap((entry: unknown) => {
      const fields = fieldsOf(entry)
      const from = countOf(fields[minPromptTokens])
      const read = readPrices(fields)
      const isConditional = Object.keys(fields).some((name) => !overrideFields.has(name))
      if (from === undefined || isConditional || Result.isFailure(read)) return []
      if ([...read.success.values()].some(({ units }) => units < 0n)) return []
      const prices = pricesOf(new Map([...base, ...read.success]))
      return prices === undefined ? [] : [{ minPromptTokens: from, prices }]
    })
    .sort((a, b) => a.minPromptTokens - b.minPromptTokens)
}

/** Decimal text or a JSON number; below 0 only -1, which says that the price is not known beforehand. */
const readPrice = (value: unknown): Decimal.Decimal | undefined => {
  const price = Predicate.isString(value)
    ? Decimal.parse(value)
    : Predicate.isNumber(value)
      ? Decimal.fromNumber(value)
      : undefined
  if (price === undefined || Decimal.compare(price, priceMax) > 0) return undefined
  return price.units < 0n && Decimal.compare(price, routed) !== 0 ? undefined : price
}
