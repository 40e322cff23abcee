import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createOpenRouter } from "@openrouter/ai-sdk-provider"
import { OpenRouter } from "@openrouter/sdk"
import { jsonSchema, type LanguageModel, streamText, tool } from "ai"
import OpenAI from "openai"
import OpenAI6 from "openai6"
import {
  assertHearsCall,
  assertHearsError,
  assertHearsText,
  type Heard,
  recorded,
  type RecordedServer,
  startRecordedServer,
  type StreamReader
} from "./RecordedServer.ts"

let running: RecordedServer
beforeAll(async () => {
  running = await startRecordedServer()
})
afterAll(() => running.dispose())

const messages = [{ role: "user" as const, content: "What is up?" }]
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const
const weather = {
  type: "function" as const,
  function: { name: "weather", description: "The weather of a city", parameters }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : JSON.stringify(error))

/** Gathers texts until the stream ends or throws. */
const reading = async (
  read: (say: (text: string | null | undefined) => void) => Promise<Omit<Heard, "text">>
): Promise<Heard> => {
  let text = ""
  try {
    const heard = await read((more) => {
      text += more ?? ""
    })
    return { text, ...heard }
  } catch (error) {
    return { text, error: textOf(error) }
  }
}

const openAiReader = (name: string, Client: typeof OpenAI | typeof OpenAI6): StreamReader => ({
  name,
  tells: ["id", "usage", "cost"],
  read: (model) =>
    reading(async (say) => {
      const client = new Client({ apiKey: running.caller.key, baseURL: running.baseURL, maxRetries: 0 })
      const { completions } = (client as OpenAI).chat
      const asked = { model, messages, tools: [weather] }
      for await (const { choices } of await completions.create({ ...asked, stream: true }))
        say(choices[0]?.delta.content)
      // Its own helper puts the chunks together, and reads the id of the last one.
      const { choices, id, usage } = await completions.stream(asked).finalChatCompletion()
      return {
        id,
        finishReason: choices[0]?.finish_reason,
        promptTokens: usage?.prompt_tokens,
        completionTokens: usage?.completion_tokens,
        cost: Object(usage).cost,
        calls: (choices[0]?.message.tool_calls ?? []).map((call) =>
          call.type === "function"
            ? { name: call.function.name, args: JSON.parse(call.function.arguments) }
            : assert.fail(call.type)
        )
      }
    })
})

/** `costOf` what the provider tells of the charge, in its metadata. */
const aiSdkReader = (
  name: string,
  modelOf: (model: string) => LanguageModel,
  costOf?: (metadata: unknown) => number | undefined
): StreamReader => ({
  name,
  tells: costOf === undefined ? ["id", "usage"] : ["id", "usage", "cost"],
  read: (model) =>
    reading(async (say) => {
      const result = streamText({
        model: modelOf(model),
        messages,
        tools: { weather: tool({ inputSchema: jsonSchema(parameters) }) },
        maxRetries: 0,
        onError: () => undefined
      })
      let error = ""
      for await (const part of result.fullStream) {
        if (part.type === "text-delta") say(part.text)
        if (part.type === "error") error = textOf(part.error)
      }
      if (error !== "") return { error }
      const [{ id }, usage, calls, finishReason, metadata] = await Promise.all([
        result.response,
        result.usage,
        result.toolCalls,
        result.finishReason,
        result.providerMetadata
      ])
      return {
        id,
        finishReason,
        promptTokens: usage.inputTokens,
        completionTokens: usage.outputTokens,
        cost: costOf?.(metadata),
        calls: calls.map(({ input, toolName }) => ({ name: toolName, args: input }))
      }
    })
})

const openRouterReader: StreamReader = {
  name: "@openrouter/sdk",
  tells: ["id", "usage", "cost"],
  read: (model) =>
    reading(async (say) => {
      const client = new OpenRouter({ apiKey: running.caller.key, serverURL: running.baseURL })
      const asked = { model, messages, tools: [weather], stream: true as const }
      const stream = await client.chat.send({ chatRequest: asked })
      if (!(Symbol.asyncIterator in stream)) return assert.fail("it is no stream")
      const heard: { -readonly [K in keyof Heard]?: Heard[K] } = {}
      let [called, args] = ["", ""]
      for await (const chunk of stream) {
        heard.id = chunk.id
        const [choice] = chunk.choices
        say(choice?.delta.content)
        for (const call of choice?.delta.toolCalls ?? []) {
          called += call.function?.name ?? ""
          args += call.function?.arguments ?? ""
        }
        heard.finishReason = choice?.finishReason ?? heard.finishReason
        heard.promptTokens = chunk.usage?.promptTokens ?? heard.promptTokens
        heard.completionTokens = chunk.usage?.completionTokens ?? heard.completionTokens
        heard.cost = chunk.usage?.cost ?? heard.cost
        // It hands errors out as chunks.
        if (chunk.error !== undefined) heard.error = chunk.error.message
      }
      return { ...heard, calls: called === "" ? [] : [{ name: called, args: JSON.parse(args) }] }
    })
}

const readers: ReadonlyArray<StreamReader> = [
  openAiReader("openai 7", OpenAI),
  openAiReader("openai 6", OpenAI6),
  aiSdkReader("ai with @ai-sdk/openai-compatible", (model) =>
    createOpenAICompatible({
      name: "signalbox",
      baseURL: running.baseURL,
      apiKey: running.caller.key
    })(model)
  ),
  aiSdkReader(
    "ai with @openrouter/ai-sdk-provider",
    (model) => createOpenRouter({ baseURL: running.baseURL, apiKey: running.caller.key }).chat(model),
    (metadata) => Object(metadata).openrouter?.usage?.cost
  ),
  openRouterReader
]

describe.each(readers)("a stream read by $name, unmodified", (reader) => {
  it("has its id, text, end and usage", async () => assertHearsText(await reader.read(recorded.says), reader))

  it("calls a tool", async () => assertHearsCall(await reader.read(recorded.calls), reader))

  it("fails where the model does, in its words", async () =>
    assertHearsError(await reader.read(recorded.breaks), reader))
})
