import { Context, Effect, Layer, Stream } from "effect"
import { imagePartType, type ChatMessage } from "#streams/agents/ChatContext.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { Files } from "#src/accounts/Files.ts"
import { AppConfig } from "#src/Config.ts"

/** Puts account files in the place of their ids in messages: models get images inside the request. */
export class PromptImages extends Context.Service<
  PromptImages,
  {
    /** What is no image, too large, or gone is told to the model in words. */
    readonly filled: (messages: ReadonlyArray<ChatMessage>) => Effect.Effect<ReadonlyArray<ChatMessage>>
  }
>()("signalbox/agents/PromptImages") {
  static readonly layer = Layer.effect(
    PromptImages,
    Effect.gen(function* () {
      const files = yield* Files
      const { limits } = yield* AppConfig
      const read = Effect.fnUntraced(function* (id: string) {
        const file = yield* files.find(id)
        if (!/^image\/(png|jpeg|webp|gif)\b/.test(file.contentType)) return words(id, "it is no image")
        if (file.sizeBytes > limits.agentImageBytes) return words(id, "it is too large")
        const bytes = yield* files.read(file, { from: 0, to: file.sizeBytes })
        const content = Buffer.concat(yield* Stream.runCollect(bytes))
        const url = `data:${file.contentType};base64,${content.toString("base64")}`
        return { type: "image_url", image_url: { url } }
      })
      const partOf = (part: unknown): Effect.Effect<unknown> => {
        if (!isJsonRecord(part) || part["type"] !== imagePartType) return Effect.succeed(part)
        const id = String(part["file_id"])
        return Effect.catch(read(id), ({ _tag }) =>
          Effect.succeed(
            words(id, _tag === "FileNotFound" ? "it is not there any more" : "it cannot be read")
          )
        )
      }
      return PromptImages.of({
        filled: (messages) =>
          Effect.forEach(messages, (message) => {
            const { content } = message
            if (!Array.isArray(content)) return Effect.succeed(message)
            return Effect.map(Effect.forEach(content, partOf), (parts) => ({ ...message, content: parts }))
          })
      })
    })
  )
}

const words = (id: string, why: string): JsonRecord => ({
  type: "text",
  text: `[The image ${id} is not shown: ${why}]`
})
