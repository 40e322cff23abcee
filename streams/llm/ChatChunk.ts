import { mendedJson } from "#schemas/core/JsonFitness.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

/** What is asked of a chunk of a stream, or of a whole answer, whose further fields are not looked at. */
export interface ChatChunk {
  readonly json: JsonRecord
  /** it says something: text, reasoning, a tool call, a refusal, audio or an image */
  readonly hasContent: boolean
  /** of the first choice that has one */
  readonly finishReason: string | undefined
  readonly error: ChunkError | undefined
}

export interface ChunkError {
  /** HTTP status that the upstream gives it, where it does */
  readonly status: number | undefined
  readonly message: string
}

/** Undefined for text that is no JSON object. */
export const readChunk = (text: string): ChatChunk | undefined => {
  const json = parseRecord(text)
  return json === undefined ? undefined : chunkOf(json)
}

export const chunkOf = (json: JsonRecord): ChatChunk => {
  const choices = Array.isArray(json["choices"]) ? json["choices"].filter(isJsonRecord) : []
  const finished = choices.find(({ finish_reason: reason }) => typeof reason === "string")
  return {
    json,
    hasContent: choices.some((choice) => saysSomething(choice["delta"]) || saysSomething(choice["message"])),
    finishReason: typeof finished?.["finish_reason"] === "string" ? finished["finish_reason"] : undefined,
    error: errorOf(json["error"], finished)
  }
}

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

/** The HTTP status that an error carries as its code, as OpenRouter has it. */
export const statusIn = (error: unknown): number | undefined => {
  const code = isJsonRecord(error) ? error["code"] : undefined
  return typeof code === "number" && code >= 400 && code < 600 ? code : undefined
}

/** An error that stands beside the choices, or that only the reason of the end gives away. */
const errorOf = (error: unknown, finished: JsonRecord | undefined): ChunkError | undefined => {
  if (isJsonRecord(error)) {
    const { message } = error
    return { status: statusIn(error), message: typeof message === "string" ? message : "The model failed" }
  }
  if (typeof error === "string") return { status: undefined, message: error }
  return finished?.["finish_reason"] === "error"
    ? { status: undefined, message: "The model failed" }
    : undefined
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
