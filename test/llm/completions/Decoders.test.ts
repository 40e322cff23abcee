import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import { OpenApi } from "effect/http-api"
import { ChatRequest } from "#schemas/llm/ChatRequest.ts"
import { EmbeddingsRequest } from "#schemas/llm/Embeddings.ts"
import { PublishedApi } from "#src/PublishedApi.ts"
import { readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { readEmbeddingsRequest } from "#src/llm/requests/EmbeddingsRequest.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"
import { type Definitions, type JsonSchema, spoiled, valuesOf } from "#test/contract/Generated.ts"

/** The published schema's verdict on an input, and the hot route's. */
const verdicts = (schema: Schema.Codec<unknown, unknown>, read: (json: unknown) => object) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (input: unknown) => {
    const published = decode(input)
    const served = read(input)
    return {
      isPublished: Result.isSuccess(published),
      isServed: !(served instanceof RequestFault),
      told: `${JSON.stringify(input)?.slice(0, 600)}: ${Result.isSuccess(published) ? "" : String(published.failure)} ${JSON.stringify(served).slice(0, 200)}`
    }
  }
}
const chat = verdicts(ChatRequest, readChatRequest)
const embeddings = verdicts(EmbeddingsRequest, readEmbeddingsRequest)

const scalar = fc.constantFrom<unknown>(
  null,
  true,
  false,
  0,
  1,
  -1,
  0.5,
  2,
  2.5,
  17,
  1e7,
  1e300,
  "",
  "a",
  "auto",
  [],
  {}
)
const anything = fc.oneof(scalar, fc.jsonValue({ maxDepth: 3 }))
const mostly = (good: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 40, arbitrary: good }, { weight: 1, arbitrary: anything })
/** Now and then just beyond what is good. */
const edge = (good: ReadonlyArray<unknown>, bad: ReadonlyArray<unknown>) =>
  mostly(
    fc.oneof(
      { weight: 30, arbitrary: fc.constantFrom(...good) },
      { weight: 1, arbitrary: fc.constantFrom(...bad) }
    )
  )
const modelName = edge(["m", "acme/model", "x".repeat(200)], ["", "x".repeat(201)])
const list = (item: fc.Arbitrary<unknown>, maxLength = 3) => fc.array(item, { maxLength })
const partial = (
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  requiredKeys: ReadonlyArray<string> = []
) => fc.record(fields, { requiredKeys: [...requiredKeys], noNullPrototype: true })

const address = edge(
  ["https://a.example/b.png", "HTTP://x", "http://a", "data:image/png;base64,iVBORw0KGgo="],
  [
    "http://",
    "https:///b",
    "ftp://a",
    "",
    "cat.png",
    "data:text/html;base64,AAAA",
    "data:image/png;base64,",
    1
  ]
)
const part = partial(
  {
    type: edge(["text", "image_url", "input_audio"], [""]),
    text: mostly(fc.string()),
    image_url: mostly(partial({ url: address, detail: scalar }, ["url"]))
  },
  ["type", "text", "image_url"]
)
const content = mostly(fc.oneof(fc.string(), fc.array(mostly(part), { minLength: 1, maxLength: 3 })))
const message = partial(
  {
    role: edge(["system", "developer", "user", "assistant", "tool", "function"], ["robot", ""]),
    content,
    tool_calls: mostly(fc.constantFrom<unknown>(null, [], [{ id: "c" }])),
    name: anything
  },
  ["role", "content"]
)
const tool = partial(
  {
    type: edge(["function", "web_search"], [""]),
    function: mostly(partial({ name: edge(["f", "weather"], [""]), strict: scalar }, ["name"]))
  },
  ["type"]
)
const chatBody = partial(
  {
    model: modelName,
    messages: mostly(fc.array(mostly(message), { minLength: 1, maxLength: 3 })),
    models: mostly(fc.oneof(list(modelName), edge([Array(20).fill("m")], [Array(21).fill("m")]))),
    stream: edge([null, true, false], ["yes"]),
    stream_options: mostly(partial({ include_usage: edge([null, true], [1]), other: anything })),
    tools: mostly(list(mostly(tool))),
    temperature: edge([null, 0, 2], [2.01, -0.01]),
    top_p: edge([0, 1], [1.01]),
    top_k: edge([0, 1], [10_000_001, 0.5]),
    min_p: edge([0, 1], [-0.1]),
    frequency_penalty: edge([-2, 2], [-2.1]),
    presence_penalty: edge([-2, 2], [2.1]),
    repetition_penalty: edge([0, 2], [2.1]),
    max_tokens: edge([null, 1, 10_000_000], [0]),
    max_completion_tokens: edge([1], [1.5]),
    n: edge([1, 16], [17, 0]),
    seed: edge([1, -1, Number.MAX_SAFE_INTEGER], [Number.MAX_SAFE_INTEGER + 1, 0.5]),
    logprobs: edge([true], [1]),
    top_logprobs: edge([0, 20], [21]),
    logit_bias: edge([{}, { "5": 1 }], [[]]),
    response_format: edge([{ type: "json_object" }], ["json"]),
    stop: mostly(
      fc.oneof(fc.string(), list(fc.string()), edge([Array(16).fill("a")], [Array(17).fill("a")]))
    ),
    other: anything
  },
  ["model", "messages"]
)

const tokenIds = fc.array(fc.oneof({ weight: 30, arbitrary: fc.nat() }, fc.constantFrom(-1, 0.5)), {
  maxLength: 4
})
const embeddingsBody = partial(
  {
    model: modelName,
    input: mostly(
      fc.oneof(
        fc.string(),
        tokenIds,
        list(fc.oneof(fc.string(), tokenIds)),
        fc.constantFrom(Array(2_048).fill("a"), Array(2_049).fill("a"), Array(9_000).fill(7))
      )
    ),
    encoding_format: edge(["float", "base64"], ["int8"]),
    dimensions: edge([1, 256], [0, 1.5]),
    user: anything
  },
  ["model", "input"]
)

/** The request bodies of the document, as its readers see them. */
const document = JSON.parse(JSON.stringify(OpenApi.fromApi(PublishedApi)))
const definitions: Definitions = document.components.schemas
const bodyOf = (path: string): JsonSchema =>
  document.paths[path].post.requestBody.content["application/json"].schema

/** Whether there are images as data: the document cannot say how each format begins. */
const hasImageData = (input: unknown): boolean => /"data:image\//i.test(JSON.stringify(input) ?? "")

describe("the published schemas of completions and embeddings", () => {
  it("accept exactly the completions that the hot route takes", () => {
    let accepted = 0
    fc.assert(
      fc.property(
        fc.oneof({ weight: 20, arbitrary: chatBody }, { weight: 1, arbitrary: anything }),
        (input) => {
          const { isPublished, isServed, told } = chat(input)
          if (isServed) accepted++
          // The document refuses every input that the route refuses, but for bytes of images.
          if (!hasImageData(input)) assert.strictEqual(isPublished, isServed, told)
          else if (isServed) assert.isTrue(isPublished, told)
        }
      ),
      { numRuns: 3_000 }
    )
    assert.isAbove(accepted, 300)
  })

  it("accept exactly the embeddings that the hot route takes", () => {
    let accepted = 0
    fc.assert(
      fc.property(
        fc.oneof({ weight: 20, arbitrary: embeddingsBody }, { weight: 1, arbitrary: anything }),
        (input) => {
          const { isPublished, isServed, told } = embeddings(input)
          if (isServed) accepted++
          assert.strictEqual(isPublished, isServed, told)
        }
      ),
      { numRuns: 2_000 }
    )
    assert.isAbove(accepted, 200)
  })

  for (const [path, verdict] of [
    ["/api/v1/chat/completions", chat],
    ["/api/v1/embeddings", embeddings]
  ] as const) {
    it(`say of ${path} what makes a request that is taken`, () => {
      const good = valuesOf(bodyOf(path), definitions)
      fc.assert(
        fc.property(good, (input) => {
          const { isServed, told } = verdict(input)
          if (!hasImageData(input)) assert.isTrue(isServed, told)
        }),
        { numRuns: 300 }
      )
      fc.assert(
        fc.property(spoiled(good), (input) => {
          const { isPublished, isServed, told } = verdict(input)
          if (!hasImageData(input)) assert.strictEqual(isPublished, isServed, told)
        }),
        { numRuns: 300 }
      )
    })
  }

  it("keep fields that nobody here knows", () => {
    const messages = [{ role: "user", content: "hi", name: "Ada" }]
    const body: unknown = { model: "m", messages, reasoning: { effort: "low" } }
    const decoded: unknown = Schema.decodeUnknownSync(ChatRequest)(body)
    assert.deepStrictEqual(decoded, body)
  })
})
