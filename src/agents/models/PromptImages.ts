import { Effect } from "effect"
import { imagePartType, type ChatMessage } from "#streams/agents/ChatContext.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { Files } from "#src/accounts/Files.ts"
import { AppConfig } from "#src/Config.ts"

/**
 * Puts account files in the place of their ids in messages: models get images inside the request. Files that are no
 * image, too large, or gone are described to the model in words, as all are where it takes no images (`isSeen`).
 */
export const makePromptImages = Effect.gen(function* () {
  const files = yield* Files
  const { limits } = yield* AppConfig
  const read = Effect.fnUntraced(function* (id: string) {
    const file = yield* files.find(id)
    if (file.size > limits.agentImageBytes) return words(id, "it is too large")
    const content = yield* files.read(file)
    const type = imageTypeOf(content)
    if (type === undefined) return words(id, "it is no PNG, JPEG, WebP or GIF")
    const url = `data:${type};base64,${content.toString("base64")}`
    return { type: "image_url", image_url: { url } }
  })
  const partOf = (part: unknown, isSeen: boolean): Effect.Effect<unknown> => {
    if (!isJsonRecord(part) || part["type"] !== imagePartType) return Effect.succeed(part)
    const id = String(part["file_id"])
    if (!isSeen) return Effect.succeed(words(id, "this model takes no images"))
    return Effect.catch(read(id), ({ _tag }) =>
      Effect.succeed(words(id, _tag === "NotFound" ? "it is not there any more" : "it cannot be read"))
    )
  }
  return (messages: ReadonlyArray<ChatMessage>, isSeen: boolean): Effect.Effect<ReadonlyArray<ChatMessage>> =>
    Effect.forEach(messages, (message) => {
      const { content } = message
      if (!Array.isArray(content)) return Effect.succeed(message)
      return Effect.map(
        Effect.forEach(content, (part) => partOf(part, isSeen)),
        (parts) => ({ ...message, content: parts })
      )
    })
})

/** By its first bytes: a name given by the sender does not count, and models refuse data of another type than named. */
const imageTypeOf = (bytes: Buffer): string | undefined => {
  const head = bytes.toString("latin1", 0, 12)
  if (head.startsWith("\u0089PNG\r\n\u001a\n")) return "image/png"
  if (head.startsWith("\u00ff\u00d8\u00ff")) return "image/jpeg"
  if (/^GIF8[79]a/.test(head)) return "image/gif"
  return head.startsWith("RIFF") && head.endsWith("WEBP") ? "image/webp" : undefined
}

const words = (id: string, why: string): JsonRecord => ({
  type: "text",
  text: `[The image ${id} is not shown: ${why}]`
})
