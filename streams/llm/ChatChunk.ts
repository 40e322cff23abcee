import { mendedJson } from "#schemas/core/JsonFitness.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

/** The fields read of a chunk of a stream, or of a whole answer; others are ignored. */
export interface ChatChunk {
  readonly json: JsonRecord
  /** it says something: text, reasoning, a tool call, a refusal, audio or an image */
  readonly hasContent: boolean
  /** of the first choice that has one */
  readonly finishReason: string | undefined
  readonly error: ChunkError | undefined
  /** indexes of the choices in it, and of those that it ends */
  readonly begun: ReadonlyArray<number>
  readonly finished: ReadonlyArray<number>
}

export interface ChunkError {
  /** HTTP status that the upstream gives it, where it does */
  readonly status: number | undefined
  readonly message: string
  /** the error as the upstream worded it */
  readonly told: unknown
}

/** Undefined for text that is no JSON object. */
export const readChunk = (text: string): ChatChunk | undefined => {
  const json = parseRecord(text)
  return json === undefined ? undefined : chunkOf(json)
}

const choicesOf = ({ choices }: JsonRecord): ReadonlyArray<JsonRecord> =>
  Array.isArray(choices) ? choices.filter(isJsonRecord) : []

/** The error of a chunk alone. */
export const errorIn = (json: JsonRecord): ChunkError | undefined => {
  const ended = choicesOf(json).find((choice) => reasonOf(choice) !== undefined)
  return errorOf(json, ended === undefined ? undefined : reasonOf(ended))
}

export const chunkOf = (json: JsonRecord): ChatChunk => {
  const choices = choicesOf(json)
  const ended = choices.filter((choice) => reasonOf(choice) !== undefined)
  const finishReason = ended[0] === undefined ? undefined : reasonOf(ended[0])
  return {
    json,
    hasContent: choices.some((choice) => saysSomething(choice["delta"]) || saysSomething(choice["message"])),
    finishReason,
    error: errorOf(json, finishReason),
    begun: choices.map(indexOf),
    finished: ended.map(indexOf)
  }
}

/** Texts by which some upstreams say in every chunk that there is no reason yet. */
const noReasons = new Set(["", "null", "none"])

const reasonOf = ({ finish_reason: reason }: JsonRecord): string | undefined =>
  typeof reason === "string" && !noReasons.has(reason.trim().toLowerCase()) ? reason : undefined

const indexOf = ({ index }: JsonRecord): number => (typeof index === "number" ? index : 0)

/**
 * The JSON object of an upstream's words, mended where they hold what cannot be kept or passed on. Undefined for what is
 * none, or nests deeper than it could be written again.
 */
export const parseRecord = (text: string): JsonRecord | undefined => {
  try {
    const json = mendedJson(JSON.parse(text))
    return isJsonRecord(json) ? json : undefined
  } catch {
    return undefined
  }
}

/** Fields of a delta or message that count as output. `role` alone, or empty text, is none. */
const outputFields = [
  "content",
  "reasoning",
  "reasoning_content",
  "reasoning_details",
  "tool_calls",
  "function_call",
  "refusal",
  "audio",
  "images"
]

const saysSomething = (value: unknown): boolean =>
  isJsonRecord(value) && outputFields.some((field) => isSomething(value[field]))

const isSomething = (value: unknown): boolean => {
  if (typeof value === "string" || Array.isArray(value)) return value.length > 0
  return isJsonRecord(value)
}

/** Codes and types in words that stand for a status. Source: OpenAI, Error codes. */
const statusesOfCodes: Readonly<Record<string, number>> = {
  rate_limit_exceeded: 429,
  rate_limit_error: 429,
  context_length_exceeded: 400,
  invalid_request_error: 400
}

const statusOf = (value: unknown): number | undefined => {
  const status = typeof value === "string" ? (statusesOfCodes[value] ?? Number(value)) : value
  return typeof status === "number" && Number.isInteger(status) && status >= 400 && status < 600
    ? status
    : undefined
}

/** The HTTP status that an error carries as its code, as OpenRouter has it, or under another name. */
const statusIn = (error: unknown): number | undefined => {
  if (!isJsonRecord(error)) return undefined
  const { code, status, status_code, type } = error
  return [code, status, status_code, type].map(statusOf).find((known) => known !== undefined)
}

const unnamedFailure = "The model failed"

const messageIn = ({ message }: JsonRecord): string =>
  typeof message === "string" && message !== "" ? message : unnamedFailure

/**
 * An error that stands beside the choices or in their place, or that only the reason of the end gives away. One that
 * says nothing, like "", is none.
 */
const errorOf = (json: JsonRecord, finishReason: string | undefined): ChunkError | undefined => {
  const { error } = json
  if (isJsonRecord(error) && Object.keys(error).length > 0) return toldError(error)
  if (typeof error === "string" && error !== "") return { status: undefined, message: error, told: error }
  if (json["object"] === "error" || json["type"] === "error") return toldError(json)
  return finishReason === "error"
    ? { status: undefined, message: unnamedFailure, told: undefined }
    : undefined
}

const toldError = (error: JsonRecord): ChunkError => ({
  status: statusIn(error),
  message: messageIn(error),
  told: error
})

/** The error that an event named "error" carries as its data, in any form. */
export const errorInEvent = (data: string): ChunkError => {
  const json = parseRecord(data)
  if (json === undefined) return { status: undefined, message: data.trim() || unnamedFailure, told: data }
  return errorOf(json, undefined) ?? toldError(json)
}

/** All that was said in a delta or message, for counting tokens. */
export const textOf = (json: JsonRecord): string => {
  const choices = Array.isArray(json["choices"]) ? json["choices"].filter(isJsonRecord) : []
  return choices.map((choice) => outputOf(choice["delta"]) + outputOf(choice["message"])).join("")
}

const outputOf = (value: unknown): string => {
  if (!isJsonRecord(value)) return ""
  const texts = [value["reasoning"] ?? value["reasoning_content"], value["content"], value["refusal"]]
  const calls = Array.isArray(value["tool_calls"]) ? value["tool_calls"].filter(isJsonRecord) : []
  const called = calls.map(({ function: called }) =>
    isJsonRecord(called) ? `${stringOf(called["name"])}${stringOf(called["arguments"])}` : ""
  )
  return [...texts.map(stringOf), ...called].join("")
}

const stringOf = (value: unknown): string => (typeof value === "string" ? value : "")

/**
 * The chunks of a stream that say what a whole answer says: its messages, then their ends, then its usage. For upstreams
 * that answer in one piece what was asked for as a stream.
 */
export const chunksOf = (whole: JsonRecord): ReadonlyArray<JsonRecord> => {
  const { choices: told, usage, ...rest } = whole
  const choices = Array.isArray(told) ? told.filter(isJsonRecord) : []
  const head = { ...rest, object: "chat.completion.chunk" }
  const said = choices.map(({ message, ...choice }, index) => ({
    index,
    ...choice,
    delta: isJsonRecord(message) ? deltaOf(message) : {},
    finish_reason: null
  }))
  const ended = choices.map(({ finish_reason: reason = null, index }, place) => ({
    index: index ?? place,
    delta: {},
    finish_reason: reason
  }))
  return [
    { ...head, choices: said },
    { ...head, choices: ended },
    ...(usage === undefined ? [] : [{ ...head, choices: [], usage }])
  ]
}

/** In a stream the calls of tools are numbered, so that their pieces can be put together. */
const deltaOf = ({ tool_calls: calls, ...message }: JsonRecord): JsonRecord => ({
  ...message,
  ...(Array.isArray(calls)
    ? { tool_calls: calls.map((call, index) => (isJsonRecord(call) ? { index, ...call } : call)) }
    : {})
})
