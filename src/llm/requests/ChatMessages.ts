import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { imageProblem } from "./ImageUrl.ts"
import { RequestFault } from "./RequestFault.ts"

/** What routing and billing need to know of the messages. */
export interface MessageFigures {
  readonly imageCount: number
  /** characters */
  readonly textLength: number
  /** of the same text in UTF-8: no tokenizer makes more tokens of it */
  readonly textBytes: number
  /** files, sounds and films: how many tokens are in one, its size does not say */
  readonly attachments: number
}

const noFigures: MessageFigures = { imageCount: 0, textLength: 0, textBytes: 0, attachments: 0 }

const sum = (a: MessageFigures, b: MessageFigures): MessageFigures => ({
  imageCount: a.imageCount + b.imageCount,
  textLength: a.textLength + b.textLength,
  textBytes: a.textBytes + b.textBytes,
  attachments: a.attachments + b.attachments
})

/** Parts of a message that are text, whatever they are called. */
const textTypes = new Set([
  "input_text",
  "output_text",
  "refusal",
  "thinking",
  "reasoning",
  "redacted_thinking"
])

const messagesMax = 10_000
const partsMax = 1_000
const roles = ["system", "developer", "user", "assistant", "tool", "function"]

/** Checks the messages. Source: contract/llm#completions; OpenAI, Chat Completions (roles, parts). */
export const readMessages = (value: unknown): MessageFigures | RequestFault => {
  if (!Array.isArray(value) || value.length === 0 || value.length > messagesMax)
    return new RequestFault("messages", `expected between 1 and ${messagesMax} messages`)
  let all = noFigures
  for (const [index, message] of value.entries()) {
    const figures = readMessage(message, `messages[${index}]`)
    if (figures instanceof RequestFault) return figures
    all = sum(all, figures)
  }
  return all
}

/** What else of a message the model reads: its calls of tools, and thoughts that clients send back. */
const besideContent = ["tool_calls", "function_call", "reasoning", "reasoning_content", "reasoning_details"]

/** Fields that a model reads as text, whatever their shape. */
export const figuresOf = (values: ReadonlyArray<unknown>): MessageFigures => {
  let [textLength, textBytes] = [0, 0]
  for (const value of values) {
    if (value === undefined || value === null) continue
    const text = typeof value === "string" ? value : JSON.stringify(value)
    textLength += text.length
    textBytes += Buffer.byteLength(text)
  }
  return { ...noFigures, textLength, textBytes }
}

const readMessage = (message: unknown, at: string): MessageFigures | RequestFault => {
  if (!isJsonRecord(message)) return new RequestFault(at, "expected an object")
  const { role, content, tool_calls: calls } = message
  if (typeof role !== "string" || !roles.includes(role))
    return new RequestFault(`${at}.role`, `expected one of ${roles.join(", ")}`)
  if (calls !== undefined && calls !== null && !Array.isArray(calls))
    return new RequestFault(`${at}.tool_calls`, "expected a list")
  const besides = figuresOf(besideContent.map((name) => message[name]))
  if (typeof content === "string") return sum(figuresOf([content]), besides)
  // Some clients say so of a message that has calls of tools and nothing else.
  const isEmpty =
    content === undefined || content === null || (Array.isArray(content) && content.length === 0)
  if (role === "assistant" && isEmpty) return besides
  if (Array.isArray(content)) {
    const figures = readParts(content, `${at}.content`)
    return figures instanceof RequestFault ? figures : sum(figures, besides)
  }
  return new RequestFault(`${at}.content`, "expected a text or a list of parts")
}

const readParts = (parts: ReadonlyArray<unknown>, at: string): MessageFigures | RequestFault => {
  if (parts.length === 0 || parts.length > partsMax)
    return new RequestFault(at, `expected between 1 and ${partsMax} parts`)
  let [imageCount, attachments] = [0, 0]
  const texts: Array<unknown> = []
  for (const [index, part] of parts.entries()) {
    const place = `${at}[${index}]`
    if (!isJsonRecord(part) || typeof part["type"] !== "string")
      return new RequestFault(place, "expected an object with a type")
    if (part["type"] === "text") {
      if (typeof part["text"] !== "string") return new RequestFault(`${place}.text`, "expected a text")
      texts.push(part["text"])
    } else if (part["type"] === "image_url") {
      const url = imageUrlOf(part)
      const problem = url === undefined ? "expected an address" : imageProblem(url)
      if (problem !== undefined) return new RequestFault(`${place}.image_url.url`, problem)
      imageCount++
    } else if (textTypes.has(part["type"])) texts.push(part)
    else attachments++
  }
  return { ...figuresOf(texts), imageCount, attachments }
}

export const isImagePart = (part: unknown): part is JsonRecord =>
  isJsonRecord(part) && part["type"] === "image_url"

const imageUrlOf = (part: JsonRecord): string | undefined => {
  const image = part["image_url"]
  const url = isJsonRecord(image) ? image["url"] : undefined
  return typeof url === "string" ? url : undefined
}
