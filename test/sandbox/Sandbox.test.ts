import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { sandboxModels } from "#src/sandbox/SandboxModels.ts"
import { exampleOf } from "#src/sandbox/SchemaExample.ts"
import { until } from "#test/harness/Eventually.ts"
import { type SandboxClient, startSandbox } from "./SandboxClient.ts"

/** The frames of a stream, decoded; comments left out. */
const framesOf = (text: string): ReadonlyArray<Frame> =>
  text
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice(6)))

interface Frame {
  readonly id: string
  readonly choices: ReadonlyArray<{
    readonly delta: {
      readonly content?: string | null
      readonly reasoning?: string
      readonly tool_calls?: ReadonlyArray<{
        readonly function: { readonly name?: string; readonly arguments: string }
      }>
    }
    readonly finish_reason: string | null
  }>
  readonly usage?: { readonly cost?: number; readonly completion_tokens: number }
  readonly error?: { readonly code: number }
}

const contentOf = (frames: ReadonlyArray<Frame>): string =>
  frames.map((frame) => frame.choices[0]?.delta.content ?? "").join("")

const weather = {
  type: "function",
  function: {
    name: "weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer", minimum: 2 } },
      required: ["city"]
    }
  }
}

let sandbox: SandboxClient
beforeAll(async () => {
  sandbox = await startSandbox()
})
afterAll(() => sandbox.close())

describe("the sandbox's list of models", () => {
  it("has OpenRouter's shape, sandbox/ ids and descriptions that say what it is", async () => {
    const { data } = JSON.parse(await (await fetch(`${sandbox.url}/models`)).text())
    assert.strictEqual(data.length, sandboxModels.length)
    for (const model of data) {
      assert.match(model.id, /^sandbox\//)
      assert.include(model.description, "no language model")
      for (const price of Object.values<string>(model.pricing)) assert.match(price, /^(-1|\d+(\.\d+)?)$/)
    }
  })

  it("is the one of a given file where there is one, and every model in it answers", async () => {
    const directory = await mkdtemp(join(tmpdir(), "signalbox-sandbox-"))
    const file = join(directory, "models.json")
    const entry = { id: "acme/rocket", name: "Rocket", pricing: { prompt: "0.5", completion: "0.25" } }
    await writeFile(file, JSON.stringify({ data: [entry] }))
    const other = await startSandbox({ modelsFile: file })
    try {
      assert.deepStrictEqual(await (await fetch(`${other.url}/models`)).json(), { data: [entry] })
      const answer = JSON.parse((await other.chat("acme/rocket", "Write 4 words")).text)
      const { completion_tokens: completion, cost, prompt_tokens: prompt } = answer.usage
      assert.deepStrictEqual([completion, cost], [4, prompt * 0.5 + 1])
      assert.strictEqual((await other.chat("sandbox/echo", "hello")).status, 400)
    } finally {
      await other.close()
      await rm(directory, { recursive: true })
    }
  })

  it("is refused where the file holds none", async () => {
    const refused = await startSandbox({ modelsFile: join(import.meta.dirname, "Sandbox.test.ts") }).then(
      () => "started",
      String
    )
    assert.include(refused, "cannot be served")
  })
})

describe("a call to the sandbox", () => {
  it("has the same answer every time, and another one for another request", async () => {
    const [first, second, other] = [
      await sandbox.chat("sandbox/thinker", "hello", { stream: true }),
      await sandbox.chat("sandbox/thinker", "hello", { stream: true }),
      await sandbox.chat("sandbox/thinker", "Hello", { stream: true })
    ]
    assert.strictEqual(second?.text, first?.text)
    assert.notStrictEqual(framesOf(other?.text ?? "")[0]?.id, framesOf(first?.text ?? "")[0]?.id)
  })

  it("says the same in a stream as in a whole answer, and ends it with usage, its cost, and [DONE]", async () => {
    const whole = JSON.parse((await sandbox.chat("sandbox/echo", "grüße, 你好 👋")).text)
    const { text } = await sandbox.chat("sandbox/echo", "grüße, 你好 👋", { stream: true })
    const frames = framesOf(text)
    assert.strictEqual(contentOf(frames), whole.choices[0].message.content)
    assert.deepStrictEqual(frames.at(-1)?.usage?.cost, whole.usage.cost)
    assert.isTrue(text.endsWith("data: [DONE]\n\n"))
  })

  it("heeds max_tokens with finish_reason length, and stop", async () => {
    const cut = JSON.parse((await sandbox.chat("sandbox/echo", "Write 50 words", { max_tokens: 3 })).text)
    assert.deepStrictEqual(cut.choices[0].message.content, "the quick brown")
    assert.deepStrictEqual([cut.choices[0].finish_reason, cut.usage.completion_tokens], ["length", 3])
    const stopped = JSON.parse((await sandbox.chat("sandbox/echo", "Write 9 words", { stop: " fox" })).text)
    assert.deepStrictEqual(stopped.choices[0].message.content, "the quick brown")
    assert.strictEqual(stopped.choices[0].finish_reason, "stop")
  })

  it("reasons in deltas of its own, and counts them among the completion tokens", async () => {
    const frames = framesOf((await sandbox.chat("sandbox/thinker", "hello", { stream: true })).text)
    const thoughts = frames.filter((frame) => frame.choices[0]?.delta.reasoning !== undefined)
    const words = frames.filter((frame) => (frame.choices[0]?.delta.content ?? "") !== "")
    assert.isAbove(thoughts.length, 3)
    assert.strictEqual(frames.at(-1)?.usage?.completion_tokens, thoughts.length + words.length)
  })

  it("calls the first tool with arguments of its schema, then answers with the result", async () => {
    const asked = { stream: true, tools: [weather] }
    const frames = framesOf((await sandbox.chat("sandbox/tools", "Weather in Oslo", asked)).text)
    const calls = frames.flatMap((frame) => frame.choices[0]?.delta.tool_calls ?? [])
    assert.strictEqual(calls[0]?.function.name, "weather")
    assert.deepStrictEqual(JSON.parse(calls.map((call) => call.function.arguments).join("")), {
      city: "Oslo",
      days: 2
    })
    const messages = [
      { role: "assistant", tool_calls: [{ id: "c1", function: { name: "weather", arguments: "{}" } }] },
      { role: "tool", tool_call_id: "c1", content: "rain" }
    ]
    const answer = JSON.parse((await sandbox.chat("sandbox/tools", "", { tools: [weather], messages })).text)
    assert.strictEqual(answer.choices[0].message.content, "The tool weather answered: rain")
  })

  it("describes an image by type, size and hash, and refuses what is none", async () => {
    const png = Buffer.alloc(33)
    png.write("\x89PNG\r\n\x1a\n", "latin1")
    png.writeUInt32BE(640, 16)
    png.writeUInt32BE(480, 20)
    const asking = (url: string) => ({
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }]
    })
    const data = `data:image/png;base64,${png.toString("base64")}`
    assert.include(
      (await sandbox.chat("sandbox/vision", "", asking(data))).text,
      "a png image of 640x480 pixels"
    )
    const named = await sandbox.chat("sandbox/vision", "", asking("https://example.com/cat.jpg"))
    assert.include(named.text, "an image at https://example.com/cat.jpg")
    const broken = await sandbox.chat("sandbox/vision", "", asking("data:image/png;base64,aGVsbG8="))
    assert.strictEqual(broken.status, 400)
    assert.strictEqual((await sandbox.chat("sandbox/echo", "", asking(data))).status, 404)
  })

  it("answers with JSON of the schema where one is asked", async () => {
    const schema = { type: "object", properties: { kind: { enum: ["b", "a"] }, n: { type: "number" } } }
    const format = { type: "json_schema", json_schema: { name: "thing", schema } }
    const { text } = await sandbox.chat("sandbox/echo", "go", { response_format: format })
    assert.deepStrictEqual(JSON.parse(JSON.parse(text).choices[0].message.content), { kind: "b", n: 1 })
  })

  it("embeds the same text in the same place, as numbers and as base64", async () => {
    const asked = { model: "sandbox/embed", input: ["one", "two"], dimensions: 20 }
    const embedded = async (more: object) =>
      JSON.parse(await (await sandbox.post("/embeddings", { ...asked, ...more })).text())
    const plain = await embedded({})
    const packed = await embedded({ encoding_format: "base64" })
    const bytes = Buffer.from(packed.data[1].embedding, "base64")
    assert.deepStrictEqual(
      Array.from({ length: 20 }, (_, index) => bytes.readFloatLE(index * 4)),
      plain.data[1].embedding
    )
    const length = plain.data[0].embedding.reduce((sum: number, x: number) => sum + x * x, 0)
    assert.approximately(length, 1, 1e-5)
  })
})

describe("a misbehaving model of the sandbox", () => {
  const statuses = [
    ["sandbox/fails", 500, null],
    ["sandbox/limited", 429, "1"],
    ["sandbox/limited-silently", 429, null],
    ["sandbox/unpaid", 402, null],
    ["sandbox/breaks", 502, null]
  ] as const
  for (const [model, status, retryAfter] of statuses) {
    it(`${model} answers ${status} in OpenRouter's shape and costs nothing`, async () => {
      const { headers, status: seen, text } = await sandbox.chat(model, "hello")
      assert.deepStrictEqual([seen, JSON.parse(text).error.code], [status, status])
      assert.strictEqual(headers.get("retry-after"), retryAfter)
      assert.strictEqual((await sandbox.served(model)).cost, "0")
    })
  }

  it("breaks a stream with an error chunk and no [DONE]", async () => {
    const { text } = await sandbox.chat("sandbox/breaks", "hello", { stream: true })
    const last = framesOf(text).at(-1)
    assert.deepStrictEqual([last?.error?.code, last?.choices[0]?.finish_reason], [502, "error"])
    assert.notInclude(text, "[DONE]")
  })

  it("says no usage, or none of the cost, or no word", async () => {
    assert.notInclude((await sandbox.chat("sandbox/no-usage", "hello", { stream: true })).text, '"usage"')
    const { usage } = JSON.parse((await sandbox.chat("sandbox/no-cost", "hello")).text)
    assert.deepStrictEqual([usage.completion_tokens > 0, "cost" in usage], [true, false])
    const empty = JSON.parse((await sandbox.chat("sandbox/empty", "hello")).text)
    assert.strictEqual(empty.choices[0].message.content, "")
  })

  it("stalls after the head of its answer until the client leaves", async () => {
    const leaving = new AbortController()
    const asked = { model: "sandbox/stalls", messages: [{ role: "user", content: "hello" }], stream: true }
    const response = await sandbox.post("/chat/completions", asked, leaving.signal)
    assert.strictEqual(response.status, 200)
    leaving.abort()
    await until("the call is over", async () =>
      (await sandbox.served("sandbox/stalls")).failed === 1 ? undefined : "it stalls on"
    )
  })

  it("refuses a prompt longer than its context", async () => {
    const { status, text } = await sandbox.chat("sandbox/small", "x".repeat(2_000))
    assert.deepStrictEqual([status, text.includes("maximum context length")], [400, true])
  })
})

describe("the sandbox's account", () => {
  it("is the exact sum of what the answers said", async () => {
    const own = await startSandbox()
    try {
      const costs: Array<Decimal.Decimal> = []
      let tokens = 0
      for (let words = 1; words <= 40; words++) {
        const { usage } = JSON.parse((await own.chat("sandbox/echo", `Write ${words} words`)).text)
        costs.push(Decimal.fromNumber(usage.cost) ?? Decimal.zero)
        tokens += usage.completion_tokens
      }
      const served = await own.served("sandbox/echo")
      assert.strictEqual(served.cost, Decimal.format(costs.reduce(Decimal.add)))
      assert.deepStrictEqual([served.completed, served.completion_tokens], [40, tokens])
    } finally {
      await own.close()
    }
  })

  it("counts of an aborted stream what was produced until the client left", async () => {
    const leaving = new AbortController()
    const asked = {
      model: "sandbox/slow",
      messages: [{ role: "user", content: "Write 100 words" }],
      stream: true,
      sandbox: { word_millis: 5 }
    }
    const response = await sandbox.post("/chat/completions", asked, leaving.signal)
    const reader = response.body?.getReader()
    await reader?.read()
    leaving.abort()
    await until("the call is counted", async () =>
      (await sandbox.served("sandbox/slow")).aborted === 1 ? undefined : "it is not"
    )
    const { completion_tokens: words, cost } = await sandbox.served("sandbox/slow")
    assert.isTrue(words >= 1 && words < 100, `${words} words`)
    assert.isAbove(Number(cost), 0)
  })
})

describe("an example of a JSON schema", () => {
  const examples = [
    [{ type: "string", format: "date" }, "2026-01-01"],
    [{ type: "string", minLength: 4, maxLength: 4 }, "word"],
    [{ type: "integer", minimum: 7, multipleOf: 5 }, 10],
    [{ type: "number", exclusiveMinimum: 3 }, 4],
    [{ anyOf: [{ type: "boolean" }, { type: "null" }] }, true],
    [{ allOf: [{ properties: { a: { const: 1 } } }, { properties: { b: { const: 2 } } }] }, { a: 1, b: 2 }],
    [{ type: "array", items: { type: "null" }, minItems: 2 }, [null, null]]
  ] as const
  for (const [schema, value] of examples) {
    it(`of ${JSON.stringify(schema)} is ${JSON.stringify(value)}`, () =>
      assert.deepStrictEqual(exampleOf(schema, "word"), value))
  }

  it("ends where a schema refers to itself", () => {
    const node = {
      type: "object",
      properties: { next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } }
    }
    const value = JSON.stringify(exampleOf({ $ref: "#/$defs/node", $defs: { node } }, "word"))
    assert.isBelow(value.length, 500)
  })
})
