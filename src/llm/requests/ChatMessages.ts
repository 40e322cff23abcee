import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { RequestFault } from "./JsonRequest.ts"

/** Address of an image that the upstream fetches itself. This server never does. */
const remote = /^https?:\/\/[^\s/]/i
const remoteLengthMax = 8_192

const data = /^data:image\/(png|jpe?g|gif|webp|avif|heic|heif);base64,/i

const brand = (bytes: Buffer, names: RegExp): boolean =>
  bytes.toString("latin1", 4, 8) === "ftyp" && names.test(bytes.toString("latin1", 8, 12))

/**
 * The first bytes of the formats. Source: PNG (RFC 2083, 3.1), JPEG (ITU T.81, B.1.1.3), GIF89a (17), WebP (RFC 9649, 2.4),
 * AVIF (AV1 Image File Format, 6.2), HEIF (ISO/IEC 23008-12, 10.2)
 */
const signatures: ReadonlyArray<(bytes: Buffer) => boolean> = [
  (bytes) => bytes.subarray(0, 8).equals(Buffer.from("\x89PNG\r\n\x1a\n", "latin1")),
  (bytes) => bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff,
  (bytes) => /^GIF8[79]a$/.test(bytes.toString("latin1", 0, 6)),
  (bytes) => bytes.toString("latin1", 0, 4) === "RIFF" && bytes.toString("latin1", 8, 12) === "WEBP",
  (bytes) => brand(bytes, /^(avif|avis|hei[cxms]|hev[cxms]|mif1|msf1)$/)
]

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

/**
 * The fault in the address of an image; undefined for one that can be an image. The data may have another format than
 * the named one: models look at the data, and browsers and phones often name another.
 */
export const imageProblem = (url: string): string | undefined => {
  if (remote.test(url))
    return url.length > remoteLengthMax ? `at most ${remoteLengthMax} characters` : undefined
  const [head] = data.exec(url) ?? []
  if (head === undefined)
    return "expected an http(s) address or data:image/(png|jpeg|gif|webp|avif|heic|heif);base64,…"
  const encoded = url.slice(head.length)
  if (encoded.length % 4 === 1 || !base64.test(encoded)) return "the data is not base64"
  const start = Buffer.from(encoded.slice(0, 32), "base64")
  return signatures.some((isImage) => isImage(start))
    ? undefined
    : "the data is no png, jpeg, gif, webp, avif or heic image"
}

/** The figures of the messages that routing and billing need. */
interface MessageFigures {
  readonly imageCount: number
  /** characters */
  readonly textLength: number
  /** of the same text in UTF-8: no tokenizer makes more tokens of it */
  readonly textBytes: number
  /** files, sounds and films: their size does not tell their tokens */
  readonly attachments: number
}

const noFigures: MessageFigures = { imageCount: 0, textLength: 0, textBytes: 0, attachments: 0 }

const sum = (a: MessageFigures, b: MessageFigures): MessageFigures => ({
  imageCount: a.imageCount + b.imageCount,
  textLength: a.textLength + b.textLength,
  textBytes: a.textBytes + b.textBytes,
  attachments: a.attachments + b.attachments
})

/** Parts of a message that are text, under any name. */
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

/** Other fields of a message that the model reads: its tool calls, and thoughts that clients send back. */
const besideContent = ["tool_calls", "function_call", "reasoning", "reasoning_content", "reasoning_details"]

/** Fields that a model reads as text, in any shape. */
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
  // Some clients send this in a message that has nothing but tool calls.
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
