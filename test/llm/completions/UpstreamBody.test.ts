import { assert, describe, it } from "@effect/vitest"
import { type ParsedChatRequest, readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"
import { type BodyOptions, bodyFor, visionBody, withDescription } from "#src/llm/requests/UpstreamBody.ts"

const sound = { model: "collection/mine", messages: [{ role: "user", content: "hello" }] }

const read = (fields: object): ParsedChatRequest => {
  const request = readChatRequest({ ...sound, ...fields })
  return request instanceof RequestFault ? assert.fail(request.problem) : request
}

const body = (fields: object, options: Partial<BodyOptions> = {}): Record<string, unknown> =>
  JSON.parse(
    bodyFor(read(fields), { model: "acme/one", messages: undefined, maxTokens: undefined, ...options })
  )

const image = (name: string) => ({ type: "image_url", image_url: { url: `https://a.example/${name}.png` } })
const text = (said: string) => ({ type: "text", text: said })

describe("what a model is asked", () => {
  it("is what the caller asked, of that model, without the caller's list of others or a preset of the platform's", () => {
    const fields = {
      temperature: 0.3,
      seed: 7,
      reasoning: { effort: "high" },
      logit_bias: { "5": -1 },
      user: "u"
    }
    assert.deepStrictEqual(body({ ...fields, models: ["acme/two"], preset: "the-platforms" }), {
      ...sound,
      ...fields,
      model: "acme/one"
    })
  })

  it("always asks a stream for its usage, and leaves the other options of the stream as they are", () => {
    assert.deepStrictEqual(body({ stream: true })["stream_options"], { include_usage: true })
    const options = { include_usage: false, chunk_size: 3 }
    assert.deepStrictEqual(body({ stream: true, stream_options: options })["stream_options"], {
      include_usage: true,
      chunk_size: 3
    })
    // OpenAI refuses stream_options where there is no stream.
    assert.notProperty(body({ stream_options: options }), "stream_options")
  })

  it("is cut to what is held under every name that the caller used, and never raised", () => {
    const cut = { maxTokens: 10 }
    assert.deepInclude(body({}, cut), { max_tokens: 10 })
    assert.notProperty(body({}, cut), "max_completion_tokens")
    assert.deepInclude(body({ max_completion_tokens: 99 }, cut), { max_completion_tokens: 10 })
    assert.notProperty(body({ max_completion_tokens: 99 }, cut), "max_tokens")
    assert.deepInclude(body({ max_tokens: 99, max_completion_tokens: 5 }, cut), {
      max_tokens: 10,
      max_completion_tokens: 5
    })
    assert.deepInclude(body({ max_tokens: 99 }), { max_tokens: 99 })
  })
})

describe("a conversation with images", () => {
  const messages = [
    { role: "system", content: "be short" },
    { role: "user", content: [text("first"), image("a")], name: "Ada" },
    { role: "assistant", content: "yes" },
    { role: "user", content: [image("b"), text("second"), image("c")] },
    { role: "user", content: "and?" }
  ]

  it("is asked of a vision model whole, with what it is to do at the end and a limit", () => {
    const asked = JSON.parse(
      visionBody(read({ messages, tools: [{ type: "x" }], temperature: 1 }), "acme/sees", 50)
    )
    assert.deepStrictEqual(Object.keys(asked), ["model", "messages", "max_tokens"])
    assert.deepInclude(asked, { model: "acme/sees", max_tokens: 50 })
    assert.deepStrictEqual(asked.messages.slice(0, -1), messages)
    assert.match(asked.messages.at(-1).content, /[Dd]escribe the images/)
  })

  it("reaches the writing model with the description in place of its last images, all else as it was", () => {
    assert.deepStrictEqual(withDescription(read({ messages }), "A cat."), [
      messages[0],
      { role: "user", content: [text("first"), text("[An image, described below]")], name: "Ada" },
      messages[2],
      { role: "user", content: [text("second"), text("A cat.")] },
      messages[4]
    ])
  })
})
