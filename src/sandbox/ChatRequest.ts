import { isJsonObject, type JsonObject } from "./SandboxModel.ts"

/** A request that the sandbox refuses with 400. */
export class BadRequest extends Error {}

export interface ChatMessage {
  readonly role: string
  /** all text parts */
  readonly text: string
  /** the URLs of its images */
  readonly images: ReadonlyArray<string>
  /** the tool calls that an assistant message makes, by id */
  readonly calls: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly argumentsText: string
  }>
  /** of a tool's result: the call that it answers */
  readonly answers: string
}

export interface Tool {
  readonly name: string
  /** JSON Schema of its arguments */
  readonly parameters: unknown
}

/** The members of a chat completion that the sandbox heeds. All others are accepted and ignored. */
export interface ChatRequest {
  readonly model: string
  readonly messages: ReadonlyArray<ChatMessage>
  readonly stream: boolean
  readonly maxTokens: number
  readonly stop: ReadonlyArray<string>
  readonly tools: ReadonlyArray<Tool>
  /** `tool_choice`: the only tool that may be called, "" for any */
  readonly toolName: string
  readonly mayCallTools: boolean
  /** JSON is wanted, of this schema if one is given */
  readonly json: { readonly schema: unknown } | undefined
  readonly wantsReasoning: boolean
  readonly play: Play
}

/**
 * The body's own field `sandbox`, which real upstreams ignore: for benches and tests.
 * `{words?, word_millis?, first_word_millis?, stamp?}`; `stamp` puts the time of sending into every chunk, in epoch
 * milliseconds with a fraction, as `sent_at`.
 */
export interface Play {
  readonly words: number | undefined
  readonly wordMillis: number | undefined
  readonly firstWordMillis: number | undefined
  readonly stamp: boolean
}

const numberOf = (value: unknown, name: string): number | undefined => {
  if (value === undefined || value === null) return undefined
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) {
    throw new BadRequest(`${name} must be a number from 0`)
  }
  return value
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const partsOf = (content: unknown, index: number): { text: string; images: ReadonlyArray<string> } => {
  if (typeof content === "string") return { text: content, images: [] }
  if (content === null || content === undefined) return { text: "", images: [] }
  if (!Array.isArray(content)) throw new BadRequest(`messages[${index}].content must be a text or parts`)
  const images: Array<string> = []
  let text = ""
  for (const part of content) {
    if (!isJsonObject(part)) throw new BadRequest(`messages[${index}].content has a part that is no object`)
    if (part["type"] === "text") text += textOf(part["text"])
    const image = part["image_url"]
    if (part["type"] === "image_url") images.push(textOf(isJsonObject(image) ? image["url"] : image))
  }
  return { text, images }
}

const callsOf = (calls: unknown): ChatMessage["calls"] =>
  Array.isArray(calls)
    ? calls.filter(isJsonObject).map((call) => {
        const made = isJsonObject(call["function"]) ? call["function"] : {}
        return {
          id: textOf(call["id"]),
          name: textOf(made["name"]),
          argumentsText: textOf(made["arguments"])
        }
      })
    : []

const messageOf = (message: unknown, index: number): ChatMessage => {
  if (!isJsonObject(message) || typeof message["role"] !== "string") {
    throw new BadRequest(`messages[${index}] must have a role`)
  }
  return {
    role: message["role"],
    ...partsOf(message["content"], index),
    calls: callsOf(message["tool_calls"]),
    answers: textOf(message["tool_call_id"])
  }
}

const toolsOf = (tools: unknown): ReadonlyArray<Tool> =>
  Array.isArray(tools)
    ? tools.filter(isJsonObject).flatMap((tool) => {
        const { function: made } = tool
        return isJsonObject(made) ? [{ name: textOf(made["name"]), parameters: made["parameters"] }] : []
      })
    : []

const jsonOf = (format: unknown): ChatRequest["json"] => {
  if (!isJsonObject(format)) return undefined
  if (format["type"] === "json_object") return { schema: undefined }
  if (format["type"] !== "json_schema") return undefined
  const described = format["json_schema"]
  return { schema: isJsonObject(described) ? described["schema"] : undefined }
}

const playOf = (play: unknown): Play => {
  const given: JsonObject = isJsonObject(play) ? play : {}
  return {
    words: numberOf(given["words"], "sandbox.words"),
    wordMillis: numberOf(given["word_millis"], "sandbox.word_millis"),
    firstWordMillis: numberOf(given["first_word_millis"], "sandbox.first_word_millis"),
    stamp: given["stamp"] === true
  }
}

const chosenTool = (choice: unknown): string =>
  isJsonObject(choice) && isJsonObject(choice["function"]) ? textOf(choice["function"]["name"]) : ""

const wantsReasoning = ({ reasoning, reasoning_effort: effort }: JsonObject): boolean =>
  effort !== "none" &&
  !(isJsonObject(reasoning) && (reasoning["exclude"] === true || reasoning["enabled"] === false))

/** Throws `BadRequest` with the fault. */
export const parseChatRequest = (body: JsonObject): ChatRequest => {
  const { messages, model, stop, tool_choice: choice } = body
  if (typeof model !== "string" || model === "") throw new BadRequest("model must be a text")
  if (!Array.isArray(messages) || messages.length === 0) throw new BadRequest("messages must not be empty")
  if (body["n"] !== undefined && body["n"] !== null && body["n"] !== 1) throw new BadRequest("n must be 1")
  const maxTokens =
    numberOf(body["max_completion_tokens"], "max_completion_tokens") ??
    numberOf(body["max_tokens"], "max_tokens") ??
    Infinity
  return {
    model,
    messages: messages.map(messageOf),
    stream: body["stream"] === true,
    maxTokens: Math.max(1, Math.floor(maxTokens)),
    stop: (Array.isArray(stop) ? stop : [stop]).filter((text) => typeof text === "string" && text !== ""),
    tools: toolsOf(body["tools"]),
    toolName: chosenTool(choice),
    mayCallTools: choice !== "none",
    json: jsonOf(body["response_format"]),
    wantsReasoning: wantsReasoning(body),
    play: playOf(body["sandbox"])
  }
}
