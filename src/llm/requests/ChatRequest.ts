import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { figuresOf, readMessages } from "./ChatMessages.ts"
import { type CallBody, ParsedBody } from "./CallBody.ts"
import { RequestFault } from "./JsonRequest.ts"

/** A completion's request, once it is valid. Source: contract/llm#completions. */
export interface ChatRequest {
  /** the body, as models get it; unread members are passed through */
  readonly source: CallBody
  readonly messageCount: number
  /** as sent: a model's id or `collection/{slug}` */
  readonly model: string
  /** further models to try, in order */
  readonly models: ReadonlyArray<string>
  readonly stream: boolean
  /** a usage chunk is wanted at the end of the stream */
  readonly includeUsage: boolean
  readonly hasTools: boolean
  readonly imageCount: number
  /** characters of all text in the messages, and of the tools and forms that the model gets */
  readonly textLength: number
  /** of the same text in UTF-8 */
  readonly textBytes: number
  /** files, sounds and films */
  readonly attachments: number
  /** the upstream's extras that are charged beside tokens, such as searches, in units of one fee */
  readonly extras: number
  /** it asks the model to think, which may show nowhere until the end */
  readonly asksForThoughts: boolean
  /** undefined: as much as the model likes */
  readonly maxTokens: number | undefined
  /** answers wanted to one question */
  readonly choices: number
}

/** A request whose body is at hand as JSON. */
export interface ParsedChatRequest extends ChatRequest {
  readonly body: JsonRecord
}

const modelLengthMax = 200
const modelsMax = 20
const tokensMax = 10_000_000
const choicesMax = 16
const toolsMax = 1_000

/** Reads a body that is JSON. Fields beyond the contract are left to the upstream. */
export const readChatRequest = (json: unknown): ParsedChatRequest | RequestFault => {
  if (!isJsonRecord(json)) return new RequestFault("", "the body has to be a JSON object")
  const model = readModel(json["model"], "model")
  if (model instanceof RequestFault) return model
  const models = readModels(json["models"])
  if (models instanceof RequestFault) return models
  const messages = readMessages(json["messages"])
  if (messages instanceof RequestFault) return messages
  const fault = parameters(json)
  if (fault !== undefined) return fault
  const tools = json["tools"]
  const options = json["stream_options"]
  const told = figuresOf([tools, json["functions"], json["response_format"], json["prediction"]])
  const stream = json["stream"] === true
  return {
    body: json,
    source: new ParsedBody(json, stream),
    messageCount: Array.isArray(json["messages"]) ? json["messages"].length : 0,
    model,
    models,
    stream,
    includeUsage: isJsonRecord(options) && options["include_usage"] === true,
    // The older name for tools counts as well: a model without tools would answer in words.
    hasTools: [tools, json["functions"]].some((list) => Array.isArray(list) && list.length > 0),
    imageCount: messages.imageCount,
    textLength: messages.textLength + told.textLength,
    textBytes: messages.textBytes + told.textBytes,
    attachments: messages.attachments,
    extras: extrasOf(json),
    asksForThoughts: thoughtFields.some((name) => json[name] !== undefined && json[name] !== null),
    maxTokens: maxTokensOf(json),
    choices: numberOf(json["n"]) ?? 1
  }
}

const thoughtFields = ["reasoning", "reasoning_effort", "include_reasoning", "thinking"]

const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

/** Models differ in which of the two names they heed: the larger value is the highest that may come. */
const maxTokensOf = (json: JsonRecord): number | undefined => {
  const told = [numberOf(json["max_completion_tokens"]), numberOf(json["max_tokens"])].filter(
    (tokens) => tokens !== undefined
  )
  return told.length === 0 ? undefined : Math.max(...told)
}

export const readModel = (value: unknown, param: string): string | RequestFault => {
  if (typeof value !== "string" || value === "") return new RequestFault(param, "expected the id of a model")
  return value.length > modelLengthMax
    ? new RequestFault(param, `at most ${modelLengthMax} characters`)
    : value
}

const readModels = (value: unknown): ReadonlyArray<string> | RequestFault => {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || value.length > modelsMax)
    return new RequestFault("models", `expected at most ${modelsMax} ids of models`)
  const models: Array<string> = []
  for (const [index, one] of value.entries()) {
    const model = readModel(one, `models[${index}]`)
    if (model instanceof RequestFault) return model
    models.push(model)
  }
  return models
}

/** The check of a parameter; null and absence leave it to the model. */
type Check = (value: unknown) => string | undefined

const between =
  (minimum: number, maximum: number): Check =>
  (value) =>
    typeof value === "number" && value >= minimum && value <= maximum
      ? undefined
      : `expected a number between ${minimum} and ${maximum}`

const integer =
  (minimum: number, maximum: number): Check =>
  (value) =>
    Number.isInteger(value) && between(minimum, maximum)(value) === undefined
      ? undefined
      : `expected a whole number between ${minimum} and ${maximum}`

const boolean: Check = (value) => (typeof value === "boolean" ? undefined : "expected true or false")

const object: Check = (value) => (isJsonRecord(value) ? undefined : "expected an object")

const isStop = (value: unknown): boolean =>
  typeof value === "string" ||
  (Array.isArray(value) && value.length <= 16 && value.every((one) => typeof one === "string"))

const checks: ReadonlyArray<readonly [name: string, check: Check]> = [
  ["stream", boolean],
  ["stream_options", object],
  ["temperature", between(0, 2)],
  ["top_p", between(0, 1)],
  // -1 in vLLM's words: no limit
  ["top_k", integer(-1, tokensMax)],
  ["min_p", between(0, 1)],
  ["frequency_penalty", between(-2, 2)],
  ["presence_penalty", between(-2, 2)],
  ["repetition_penalty", between(0, 2)],
  ["max_tokens", integer(1, tokensMax)],
  ["max_completion_tokens", integer(1, tokensMax)],
  ["n", integer(1, choicesMax)],
  ["seed", integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)],
  ["logprobs", boolean],
  ["top_logprobs", integer(0, 20)],
  ["logit_bias", object],
  ["response_format", object],
  ["stop", (value) => (isStop(value) ? undefined : "expected a text or at most 16 texts")]
]

const parameters = (json: JsonRecord): RequestFault | undefined => {
  for (const [name, check] of checks) {
    const value = json[name]
    if (value === undefined || value === null) continue
    const problem = check(value)
    if (problem !== undefined) return new RequestFault(name, problem)
  }
  const options = json["stream_options"]
  const includeUsage = isJsonRecord(options) ? options["include_usage"] : undefined
  if (includeUsage !== undefined && includeUsage !== null && typeof includeUsage !== "boolean")
    return new RequestFault("stream_options.include_usage", "expected true or false")
  return tools(json["tools"])
}

const tools = (value: unknown): RequestFault | undefined => {
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value) || value.length > toolsMax)
    return new RequestFault("tools", `expected at most ${toolsMax} tools`)
  for (const [index, tool] of value.entries()) {
    const at = `tools[${index}]`
    if (!isJsonRecord(tool) || typeof tool["type"] !== "string")
      return new RequestFault(at, "expected an object with a type")
    if (tool["type"] !== "function") continue
    const called = tool["function"]
    if (!isJsonRecord(called) || typeof called["name"] !== "string" || called["name"] === "")
      return new RequestFault(`${at}.function.name`, "expected the function's name")
  }
  return undefined
}

/** Results of a search that one fee covers. Source: OpenRouter, Web Search: $4 a thousand results, five unless asked otherwise. */
const resultsPerFee = 10

/** One extra may not ask for more fees than these: the hold of a call stays finite. */
const feesMax = 1_000

/** Fields of an extra that hold the wanted amount. */
const amounts = ["max_results", "max_uses", "max_total_results", "n"]

/**
 * The work that a request asks of the upstream beside reading and writing tokens, for which it charges by its own tariff: plugins,
 * tools that it runs itself, searches, pictures and sound in the answer. In units of one fee.
 * Source: contract/llm#charging.
 */
const extrasOf = (json: JsonRecord): number =>
  listOf(json["plugins"]).reduce<number>((fees, plugin) => fees + feesOf(plugin), 0) +
  listOf(json["tools"])
    .filter((tool) => isJsonRecord(tool) && tool["type"] !== "function")
    .reduce<number>((fees, tool) => fees + feesOf(tool), 0) +
  (isJsonRecord(json["web_search_options"]) ? 1 : 0) +
  listOf(json["modalities"]).filter((one) => one !== "text").length

/** An upstream may take one that is not in a list as well. */
const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

const feesOf = (extra: unknown): number => {
  const fields = isJsonRecord(extra) ? [extra, extra["parameters"], extra["web"], extra["search"]] : []
  const wanted = fields
    .filter(isJsonRecord)
    .flatMap((one) => amounts.map((name) => one[name]))
    .filter((amount) => typeof amount === "number" && amount > 0)
  const most = Math.max(1, ...wanted.map(Number))
  return Math.min(feesMax, Math.max(1, Math.ceil(most / resultsPerFee)))
}
