import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { imageProblem } from "./ImageUrl.ts"
import { RequestFault } from "./RequestFault.ts"

/** What routing and billing need to know of the messages. */
export interface MessageFigures {
  readonly imageCount: number
  /** characters */
  readonly textLength: number
  /** tokens of files, sounds and films, at a guess */
  readonly attachedTokens: number
}

/** The least that a file, sound or film is taken for. */
const attachmentTokensMin = 1_500

/** A page of a PDF and a second of sound both come to about a token for so many characters of base64, or fewer. */
const attachedCharactersPerToken = 30

const messagesMax = 10_000
const partsMax = 1_000
const roles = ["system", "developer", "user", "assistant", "tool", "function"]

/** Checks the messages. Source: spec 1, POST /chat/completions body; OpenAI, Chat Completions (roles, parts). */
export const readMessages = (value: unknown): MessageFigures | RequestFault => {
  if (!Array.isArray(value) || value.length === 0 || value.length > messagesMax)
    return new RequestFault("messages", `expected between 1 and ${messagesMax} messages`)
  let imageCount = 0
  let textLength = 0
  let attachedTokens = 0
  for (const [index, message] of value.entries()) {
    const figures = readMessage(message, `messages[${index}]`)
    if (figures instanceof RequestFault) return figures
    imageCount += figures.imageCount
    textLength += figures.textLength
    attachedTokens += figures.attachedTokens
  }
  return { imageCount, textLength, attachedTokens }
}

/** What else of a message the model reads: its calls of tools, and thoughts that clients send back. */
const besideContent = ["tool_calls", "function_call", "reasoning", "reasoning_content", "reasoning_details"]

/** Characters of fields that a model reads as text, whatever their shape. */
export const lengthOf = (values: ReadonlyArray<unknown>): number =>
  values.reduce<number>((sum, value) => {
    if (value === undefined || value === null) return sum
    return sum + (typeof value === "string" ? value : JSON.stringify(value)).length
  }, 0)

const readMessage = (message: unknown, at: string): MessageFigures | RequestFault => {
  if (!isJsonRecord(message)) return new RequestFault(at, "expected an object")
  const { role, content, tool_calls: calls } = message
  if (typeof role !== "string" || !roles.includes(role))
    return new RequestFault(`${at}.role`, `expected one of ${roles.join(", ")}`)
  if (calls !== undefined && calls !== null && !Array.isArray(calls))
    return new RequestFault(`${at}.tool_calls`, "expected a list")
  const besides = lengthOf(besideContent.map((name) => message[name]))
  if (typeof content === "string") return textFigures(content.length + besides)
  // Some clients say so of a message that has calls of tools and nothing else.
  const isEmpty =
    content === undefined || content === null || (Array.isArray(content) && content.length === 0)
  if (role === "assistant" && isEmpty) return textFigures(besides)
  if (Array.isArray(content)) {
    const figures = readParts(content, `${at}.content`)
    return figures instanceof RequestFault
      ? figures
      : { ...figures, textLength: figures.textLength + besides }
  }
  return new RequestFault(`${at}.content`, "expected a text or a list of parts")
}

const textFigures = (textLength: number): MessageFigures => ({
  imageCount: 0,
  textLength,
  attachedTokens: 0
})

const readParts = (parts: ReadonlyArray<unknown>, at: string): MessageFigures | RequestFault => {
  if (parts.length === 0 || parts.length > partsMax)
    return new RequestFault(at, `expected between 1 and ${partsMax} parts`)
  let imageCount = 0
  let textLength = 0
  let attachedTokens = 0
  for (const [index, part] of parts.entries()) {
    const place = `${at}[${index}]`
    if (!isJsonRecord(part) || typeof part["type"] !== "string")
      return new RequestFault(place, "expected an object with a type")
    if (part["type"] === "text") {
      if (typeof part["text"] !== "string") return new RequestFault(`${place}.text`, "expected a text")
      textLength += part["text"].length
    } else if (part["type"] === "image_url") {
      const url = imageUrlOf(part)
      const problem = url === undefined ? "expected an address" : imageProblem(url)
      if (problem !== undefined) return new RequestFault(`${place}.image_url.url`, problem)
      imageCount++
    } else {
      const characters = lengthOf([part])
      attachedTokens += Math.max(attachmentTokensMin, Math.ceil(characters / attachedCharactersPerToken))
    }
  }
  return { imageCount, textLength, attachedTokens }
}

export const isImagePart = (part: unknown): part is JsonRecord =>
  isJsonRecord(part) && part["type"] === "image_url"

const imageUrlOf = (part: JsonRecord): string | undefined => {
  const image = part["image_url"]
  const url = isJsonRecord(image) ? image["url"] : undefined
  return typeof url === "string" ? url : undefined
}
