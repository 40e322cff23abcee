import { assert, beforeAll, describe, it } from "@effect/vitest"
import { createOpenAICompatible, type OpenAICompatibleProvider } from "@ai-sdk/openai-compatible"
import {
  APICallError,
  embedMany,
  generateText,
  isStepCount,
  jsonSchema,
  RetryError,
  streamText,
  tool
} from "ai"
import { until } from "#test/harness/Eventually.ts"
import { makeCaller } from "../Caller.ts"
import {
  countingFetch,
  type SandboxServer,
  startSandboxServer,
  tinyPng,
  weatherParameters
} from "./SandboxServer.ts"

let running: SandboxServer
let provider: OpenAICompatibleProvider
beforeAll(async () => {
  running = await startSandboxServer()
  provider = providerOf(running.caller.key)
})

const providerOf = (apiKey: string, options: object = {}): OpenAICompatibleProvider =>
  createOpenAICompatible({
    name: "signalbox",
    baseURL: running.baseURL,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...options
  })

const echoed = `You said: "Hello there". This is sandbox/echo, a program that stands in for a language model.`

const weather = tool({
  description: "The weather of a city",
  inputSchema: jsonSchema<{ city: string; days?: number }>(weatherParameters),
  execute: async ({ city, days }) => `rain in ${city} for ${days} days`
})

const thrownBy = (run: () => PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(run()).then(
    (value) => assert.fail(`it answered ${JSON.stringify(value)}`),
    (error: unknown) => error
  )

const assertCallError = (error: unknown, statusCode: number, isRetryable: boolean, words: string): void => {
  assert.isTrue(APICallError.isInstance(error), String(error))
  assert.deepInclude(error, { statusCode, isRetryable })
  assert.include(String(error), words)
}

describe("the ai client with its openai-compatible provider, unmodified", () => {
  it("completes", async () => {
    const { finishReason, text, usage } = await generateText({
      model: provider("sandbox/echo"),
      prompt: "Hello there"
    })
    assert.deepStrictEqual([text, finishReason], [echoed, "stop"])
    assert.isAbove(usage.totalTokens ?? 0, 10)
  })

  it("streams without an error part, with its usage, past the summary frame", async () => {
    const result = streamText({ model: provider("sandbox/echo"), prompt: "Hello there" })
    const types = new Set<string>()
    for await (const part of result.fullStream) types.add(part.type)
    assert.isFalse(types.has("error"), [...types].join())
    assert.deepStrictEqual([await result.text, await result.finishReason], [echoed, "stop"])
    assert.isAbove((await result.usage).outputTokens ?? 0, 10)
  })

  it("hears a model reason", async () => {
    const result = streamText({ model: provider("sandbox/thinker"), prompt: "Hello there" })
    await result.consumeStream()
    assert.include(await result.reasoningText, "I am a sandbox")
  })

  it("runs tools to the end, streamed and not", async () => {
    const asked = {
      model: provider("sandbox/tools"),
      prompt: "What is the weather in Oslo",
      tools: { weather },
      stopWhen: isStepCount(3)
    }
    const answer = "The tool weather answered: rain in Oslo for 2 days"
    assert.strictEqual((await generateText(asked)).text, answer)
    const streamed = streamText(asked)
    await streamed.consumeStream()
    assert.deepStrictEqual([await streamed.text, (await streamed.steps).length], [answer, 2])
  })

  it("shows images to a model that sees them", async () => {
    const image = { type: "file" as const, mediaType: "image/png", data: Buffer.from(tinyPng, "base64") }
    const { text } = await generateText({
      model: provider("sandbox/vision"),
      messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, image] }]
    })
    assert.include(text, "a png image of 1x1 pixels")
  })

  it("embeds", async () => {
    const { embeddings, usage } = await embedMany({
      model: provider.embeddingModel("sandbox/embed"),
      values: ["one", "two", "one"]
    })
    assert.strictEqual(embeddings.length, 3)
    assert.deepStrictEqual(embeddings[2], embeddings[0])
    assert.isAbove(usage.tokens, 0)
  })

  it("aborts a stream, and with it the upstream's call", async () => {
    const { aborted } = await running.sandbox.served("sandbox/slow")
    const leaving = new AbortController()
    const result = streamText({
      model: provider("sandbox/slow"),
      prompt: "Write 500 words",
      abortSignal: leaving.signal
    })
    for await (const part of result.fullStream) if (part.type === "text-delta") leaving.abort()
    await until("the upstream's call is aborted", async () =>
      (await running.sandbox.served("sandbox/slow")).aborted === aborted + 1 ? undefined : "it goes on"
    )
  })
})

describe("the ai client throws", () => {
  const say = (from: OpenAICompatibleProvider, model: string) =>
    generateText({ model: from(model), prompt: "Hello there" })

  it("an APICallError of status 401, 403, 404 or 402, not to be retried, with the server's words", async () => {
    const scoped = providerOf(await running.caller.makeKey({ kind: "router", models: ["sandbox/free"] }))
    const poor = providerOf((await makeCaller(running.server, 0)).key)
    assertCallError(await thrownBy(() => say(providerOf("sk_nobody"), "sandbox/echo")), 401, false, "API key")
    assertCallError(await thrownBy(() => say(scoped, "sandbox/echo")), 403, false, "sandbox/echo")
    assertCallError(await thrownBy(() => say(provider, "sandbox/nowhere")), 404, false, "sandbox/nowhere")
    assertCallError(await thrownBy(() => say(poor, "sandbox/echo")), 402, false, "credits")
  })

  it("a RetryError when the model fails every time", async () => {
    const { fetch, times } = countingFetch()
    const error = await thrownBy(() =>
      generateText({
        model: providerOf(running.caller.key, { fetch })("sandbox/fails"),
        prompt: "Hello there",
        maxRetries: 1
      })
    )
    assert.isTrue(RetryError.isInstance(error), String(error))
    assert.strictEqual(times.length, 2)
  })

  it("a RetryError of a rate limit, having waited as long as Retry-After says", async () => {
    const { fetch, times } = countingFetch()
    const error = await thrownBy(() =>
      generateText({
        model: providerOf(running.caller.key, { fetch })("sandbox/limited"),
        prompt: "Hello there",
        maxRetries: 1
      })
    )
    assert.isTrue(RetryError.isInstance(error), String(error))
    assert.isAtLeast((times[1] ?? 0) - (times[0] ?? 0), 990)
  })

  it("an error part within a stream that breaks off, behind the words that had come", async () => {
    const result = streamText({
      model: provider("sandbox/breaks"),
      prompt: "Hello there",
      maxRetries: 0,
      onError: () => undefined
    })
    const types: Array<string> = []
    for await (const part of result.fullStream) types.push(part.type)
    assert.includeMembers(types, ["text-delta", "error"])
  })
})
