import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { isImagePart } from "./ChatMessages.ts"

/** A completion whose body is at hand as JSON. */
interface Parsed {
  readonly body: JsonRecord
  readonly stream: boolean
}

/** The body for one model, from the caller's. `messages` if the images were described before. */
export interface BodyOptions {
  readonly model: string
  readonly messages: ReadonlyArray<unknown> | undefined
  /** output tokens of one choice, if the hold covers fewer than were asked for */
  readonly maxTokens: number | undefined
}

/**
 * Everything else is passed through. The list of fallbacks is this server's own business, and a `preset` would be one of
 * the platform's account at the upstream.
 */
export const bodyFor = (request: Parsed, { maxTokens, messages, model }: BodyOptions): string => {
  const { models: _models, preset: _preset, stream_options: options, ...rest } = request.body
  return JSON.stringify({
    ...rest,
    model,
    ...(messages === undefined ? {} : { messages }),
    ...(maxTokens === undefined ? {} : limitedTo(request.body, maxTokens)),
    ...(request.stream ? { stream_options: streamOptions(options) } : {})
  })
}

export const streamOptions = (options: unknown): JsonRecord => ({
  ...(isJsonRecord(options) ? options : {}),
  include_usage: true
})

/** Under the names that the caller used, where their values are higher. */
export const limitedTo = (body: JsonRecord, maxTokens: number): JsonRecord => {
  const used = ["max_completion_tokens", "max_tokens"].filter((name) => typeof body[name] === "number")
  const names = used.length === 0 ? ["max_tokens"] : used
  return Object.fromEntries(names.map((name) => [name, Math.min(Number(body[name] ?? maxTokens), maxTokens)]))
}

const describe =
  "You see what another model, which will answer, cannot see. Describe the images of this conversation for it: " +
  "everything that matters to what the user wants, with all text in them word for word. Do not answer the user."

/** The same conversation, for a vision model: it describes the images in the light of it. */
export const visionBody = (request: Pick<Parsed, "body">, model: string, maxTokens: number): string =>
  JSON.stringify({
    model,
    messages: [...messagesOf(request), describing],
    max_tokens: maxTokens
  })

/** The last message for a vision model. */
export const describing = { role: "user", content: describe }

const messagesOf = (request: Pick<Parsed, "body">): ReadonlyArray<unknown> =>
  Array.isArray(request.body["messages"]) ? request.body["messages"] : []

/** The conversation with the images replaced by text: the last message that has any gets the description. */
export const withDescription = (
  request: Pick<Parsed, "body">,
  description: string
): ReadonlyArray<unknown> => {
  const messages = messagesOf(request)
  const last = messages.findLastIndex((message) => partsOf(message).some(isImagePart))
  return messages.map((message, index) => {
    const parts = partsOf(message)
    if (!isJsonRecord(message) || !parts.some(isImagePart)) return message
    const text = index === last ? description : "[An image, described below]"
    return { ...message, content: [...parts.filter((part) => !isImagePart(part)), { type: "text", text }] }
  })
}

const partsOf = (message: unknown): ReadonlyArray<unknown> =>
  isJsonRecord(message) && Array.isArray(message["content"]) ? message["content"] : []
