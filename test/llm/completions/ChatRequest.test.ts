import { assert, describe, it } from "@effect/vitest"
import { type ParsedChatRequest, readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { imageProblem } from "#src/llm/requests/ChatMessages.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"

const messages = [{ role: "user", content: "hello" }]
const sound = { model: "acme/model", messages }
const many = (length: number, value: unknown = "x") => Array.from({ length }, () => value)
const tool = { type: "function", function: { name: "f", parameters: {} } }

const read = (fields: object): ParsedChatRequest => {
  const request = readChatRequest({ ...sound, ...fields })
  if (request instanceof RequestFault) return assert.fail(`${request.param}: ${request.problem}`)
  return request
}

const paramOf = (body: unknown): string | undefined => {
  const request = readChatRequest(body)
  return request instanceof RequestFault ? request.param : undefined
}

/** The values of each field on both sides of its limit. */
const edges: ReadonlyArray<
  readonly [field: string, good: ReadonlyArray<unknown>, bad: ReadonlyArray<unknown>]
> = [
  ["model", ["a", "x".repeat(200)], [null, "", "x".repeat(201), 1, ["a"]]],
  ["models", [null, [], many(20)], ["a", many(21), {}]],
  ["messages", [messages, many(10_000, messages[0])], [null, [], {}, "hello", many(10_001, messages[0])]],
  ["stream", [null, true, false], ["true", 1]],
  ["stream_options", [null, {}, { include_usage: null }, { other: 1 }], [true, [], "x"]],
  ["temperature", [null, 0, 2, 0.7], [-0.01, 2.01, "1", true, [1]]],
  ["top_p", [0, 1], [-0.01, 1.01, "1"]],
  ["top_k", [-1, 0, 10_000_000], [-2, 0.5, 10_000_001]],
  ["min_p", [0, 1], [-0.01, 1.01]],
  ["frequency_penalty", [-2, 2], [-2.01, 2.01, "0"]],
  ["presence_penalty", [-2, 2], [-2.01, 2.01, {}]],
  ["repetition_penalty", [0, 2], [-0.01, 2.01]],
  ["max_tokens", [null, 1, 10_000_000], [0, -1, 1.5, 10_000_001, "5"]],
  ["max_completion_tokens", [null, 1, 10_000_000], [0, 1.5, "5"]],
  ["n", [null, 1, 16], [0, 17, 1.5, "2"]],
  ["seed", [-9_007_199_254_740_991, 0], [0.5, 9_007_199_254_740_992, "1"]],
  ["logprobs", [true, null], [1]],
  ["top_logprobs", [0, 20], [-1, 21]],
  ["logit_bias", [{ "50256": -100 }], [[], 1]],
  ["response_format", [{ type: "json_object" }], ["json_object", []]],
  ["stop", [null, "", "end", [], many(16)], [1, many(17), [1], {}]],
  ["tools", [null, [], [tool], [{ type: "web_search" }], many(1_000, tool)], ["f", {}, many(1_001, tool)]]
]

/** Messages, and the fields blamed in them. */
const spoiledMessages: ReadonlyArray<readonly [message: unknown, param: string]> = [
  ["hello", ""],
  [null, ""],
  [[], ""],
  [{ content: "a" }, ".role"],
  [{ role: "robot", content: "a" }, ".role"],
  [{ role: "user" }, ".content"],
  [{ role: "user", content: null }, ".content"],
  [{ role: "tool", content: null }, ".content"],
  [{ role: "user", content: [] }, ".content"],
  [{ role: "user", content: many(1_001, { type: "text", text: "a" }) }, ".content"],
  [{ role: "user", content: ["a"] }, ".content[0]"],
  [{ role: "user", content: [{ text: "a" }] }, ".content[0]"],
  [{ role: "user", content: [{ type: "text", text: "a" }, { type: "text" }] }, ".content[1].text"],
  [{ role: "user", content: [{ type: "image_url" }] }, ".content[0].image_url.url"],
  [
    { role: "user", content: [{ type: "image_url", image_url: "https://a.b/c" }] },
    ".content[0].image_url.url"
  ],
  [{ role: "assistant", content: "a", tool_calls: {} }, ".tool_calls"]
]

const soundMessages: ReadonlyArray<unknown> = [
  ...["system", "developer", "user", "assistant", "tool", "function"].map((role) => ({ role, content: "" })),
  { role: "assistant" },
  { role: "assistant", content: [], tool_calls: [{ id: "a", type: "function", function: { name: "f" } }] },
  { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function" }] },
  { role: "user", content: [{ type: "input_audio", input_audio: { data: "", format: "wav" } }] },
  { role: "user", content: [{ type: "text", text: "a", cache_control: { type: "ephemeral" } }], name: "Ada" }
]

describe("a completion that is asked for", () => {
  it("is refused by the name of the first field that cannot be taken, and not a hair sooner", () => {
    for (const [field, good, bad] of edges) {
      for (const value of good)
        assert.isUndefined(
          paramOf({ ...sound, [field]: value }),
          `${field} ${JSON.stringify(value)?.slice(0, 80)}`
        )
      for (const value of bad)
        assert.strictEqual(paramOf({ ...sound, [field]: value }), field, JSON.stringify(value)?.slice(0, 80))
    }
  })

  it("may leave out all but the model and the messages", () => {
    assert.isUndefined(paramOf(sound))
    assert.strictEqual(paramOf({ messages }), "model")
    assert.strictEqual(paramOf({ model: "acme/model" }), "messages")
    for (const body of [null, [], "x", 1, undefined]) assert.strictEqual(paramOf(body), "")
  })

  it("is refused by the place of the message, part or tool at fault", () => {
    for (const [message, param] of spoiledMessages)
      assert.strictEqual(
        paramOf({ ...sound, messages: [...messages, message] }),
        `messages[1]${param}`,
        JSON.stringify(message)?.slice(0, 80)
      )
    for (const message of soundMessages)
      assert.isUndefined(paramOf({ ...sound, messages: [message] }), JSON.stringify(message))
    assert.strictEqual(paramOf({ ...sound, models: ["a", ""] }), "models[1]")
    assert.strictEqual(paramOf({ ...sound, tools: [tool, {}] }), "tools[1]")
    assert.strictEqual(
      paramOf({ ...sound, tools: [{ type: "function", function: {} }] }),
      "tools[0].function.name"
    )
    const options = { include_usage: "yes" }
    assert.strictEqual(paramOf({ ...sound, stream_options: options }), "stream_options.include_usage")
  })

  it("keeps its body as it is, with fields that nobody here knows", () => {
    const body = { ...sound, temperature: 0.5, reasoning: { effort: "low" }, provider: { order: ["x"] } }
    assert.strictEqual(read(body).body["reasoning"], body.reasoning)
    assert.deepStrictEqual(read(body).body, body)
  })

  it("tells routing and billing what they have to know", () => {
    assert.deepInclude(read({}), {
      models: [],
      stream: false,
      includeUsage: false,
      hasTools: false,
      choices: 1
    })
    assert.isUndefined(read({}).maxTokens)
    assert.deepInclude(read({ stream: true, stream_options: { include_usage: true }, n: 3 }), {
      stream: true,
      includeUsage: true,
      choices: 3
    })
    assert.deepInclude(read({ tools: [] }), { hasTools: false })
    assert.deepInclude(read({ tools: [tool] }), { hasTools: true })
  })

  it("has tools under either of their names", () => {
    const asked = { model: "a/b", messages: [{ role: "user", content: "hi" }] }
    const [one] = [{ name: "weather", parameters: {} }]
    for (const [more, hasTools] of [
      [{}, false],
      [{ functions: [] }, false],
      [{ functions: [one] }, true],
      [{ tools: [{ type: "function", function: one }] }, true]
    ] as const)
      assert.deepInclude(readChatRequest({ ...asked, ...more }), { hasTools })
  })

  it("counts the text of all messages, parts, calls and tools, and the images", () => {
    const calls = [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }]
    const image = { type: "image_url", image_url: { url: "https://a.example/b.png" } }
    const parts = [{ type: "text", text: "12345" }, image, image]
    const request = read({
      messages: [
        { role: "system", content: "123" },
        { role: "user", content: parts },
        { role: "assistant", content: null, tool_calls: calls }
      ],
      tools: [tool]
    })
    assert.strictEqual(request.imageCount, 2)
    assert.strictEqual(request.textLength, 8 + JSON.stringify(calls).length + JSON.stringify([tool]).length)
  })

  it("holds for the larger of both names of the most tokens, since models heed the one or the other", () => {
    assert.strictEqual(read({ max_tokens: 5 }).maxTokens, 5)
    assert.strictEqual(read({ max_completion_tokens: 7 }).maxTokens, 7)
    assert.strictEqual(read({ max_tokens: 5_000, max_completion_tokens: 1 }).maxTokens, 5_000)
    assert.strictEqual(read({ max_tokens: 5, max_completion_tokens: null }).maxTokens, 5)
  })
})

const base64 = (bytes: string): string => Buffer.from(bytes, "latin1").toString("base64")
const data = (format: string, bytes: string): string => `data:image/${format};base64,${base64(bytes)}`
const heads: Readonly<Record<string, string>> = {
  png: "\x89PNG\r\n\x1a\n",
  jpeg: "\xff\xd8\xff\xe0",
  gif: "GIF89a",
  webp: "RIFF\x00\x00\x00\x00WEBP",
  avif: "\x00\x00\x00\x20ftypavif\x00\x00\x00\x00",
  heic: "\x00\x00\x00\x20ftypheic\x00\x00\x00\x00",
  heif: "\x00\x00\x00\x20ftypmif1\x00\x00\x00\x00"
}

describe("the address of an image", () => {
  it("is one on the web, or data that begins as one of the formats does, whichever is named", () => {
    for (const url of [
      "https://a.example/b.png",
      "HTTP://127.0.0.1:8080/x",
      `https://a.example/${"x".repeat(8_000)}`
    ])
      assert.isUndefined(imageProblem(url), url)
    for (const [format, head] of Object.entries(heads)) {
      assert.isUndefined(imageProblem(data(format, `${head} and more`)), format)
      for (const [other, head] of Object.entries(heads))
        assert.isUndefined(imageProblem(data(format, `${head} and more`)), `${other} as ${format}`)
      assert.isString(imageProblem(data(format, "\x00\x00\x00\x20ftypisom\x00\x00")), `a film as ${format}`)
      assert.isString(imageProblem(data(format, "<html><body>")), `a page as ${format}`)
    }
    assert.isUndefined(imageProblem(data("jpg", "\xff\xd8\xff\xe0")))
    assert.isUndefined(imageProblem(data("PNG", heads["png"] ?? "").replace("data:", "DATA:")))
  })

  it("is nothing else", () => {
    const wrong = [
      "",
      "cat.png",
      "ftp://a.example/b.png",
      "file:///etc/passwd",
      "https://",
      `https://a.example/${"x".repeat(8_192)}`,
      "javascript:alert(1)",
      data("svg+xml", "<svg/>"),
      data("png", ""),
      "data:image/png;base64,iVBORw0KGgo*",
      "data:image/png;base64,iVBOR",
      "data:image/png,iVBORw0KGgo="
    ]
    for (const url of wrong) assert.isString(imageProblem(url), url.slice(0, 60))
  })
})
