import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type FrameKind, kindOf } from "#streams/llm/SseFrames.ts"

/** Slow and plain: splits the event into its lines, reads its data as JSON and looks at every key. */
const slowKindOf = (frame: string): FrameKind => {
  const data = frame
    .split(/\r?\n/)
    .flatMap((line) => (line.startsWith("data:") ? [line.slice(5)] : []))
    .join("\n")
    .trim()
  if (data === "") return "comment"
  if (data === "[DONE]") return "done"
  const json = parse(data)
  return typeof json === "object" && json !== null && !isSpecial(json) ? "content" : "special"
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    assert.instanceOf(error, SyntaxError)
    return undefined
  }
}

/** Somewhere in it there is usage, an error or a reason of the end that is not null or "", or a cost. */
const isSpecial = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return false
  return Object.entries(value).some(
    ([key, inner]) =>
      (!Array.isArray(value) && telling.has(key) && inner !== null && inner !== "") ||
      (!Array.isArray(value) && key.startsWith("cost")) ||
      isSpecial(inner)
  )
}

const telling = new Set(["usage", "error", "finish_reason"])

const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8, cost: 0.0001 }

/** Texts of a model that could mislead a reader of bytes. */
const said = fc.oneof(
  fc.constantFrom(
    `"usage":{"cost":1}`,
    `{"error":"no"}`,
    `\\"usage\\":1`,
    `"error"`,
    "[DONE]",
    "data: [DONE]\n\ndata: x",
    '\\"',
    "}",
    "\\",
    "世界 👋",
    ""
  ),
  fc.string({ unit: "grapheme", maxLength: 20 })
)
const maybe = (value: fc.Arbitrary<unknown>) => fc.option(value, { nil: undefined })
const delta = fc.record(
  {
    role: fc.constant("assistant"),
    content: fc.option(said),
    reasoning: fc.option(said),
    refusal: fc.option(said)
  },
  { requiredKeys: [] }
)
const choice = fc.record({
  index: fc.nat(3),
  delta,
  finish_reason: fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(null, "") },
    { weight: 1, arbitrary: fc.constantFrom("stop", "length", "error") }
  )
})
const chunk = fc.record(
  {
    id: fc.constantFrom("gen-1", "usage", "error"),
    object: fc.constant("chat.completion.chunk"),
    model: said,
    choices: fc.array(choice, { maxLength: 2 }),
    usage: maybe(fc.constantFrom<unknown>(null, null, usage, {}, 0, "none", [], false)),
    error: maybe(fc.constantFrom<unknown>(null, null, "", { code: 502, message: "No" }, "No", 1)),
    cost: fc.oneof(
      { weight: 9, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom(null, 0.5) }
    ),
    provider: said
  },
  { requiredKeys: ["choices"] }
)

const written = fc
  .tuple(chunk, fc.constantFrom<"compact" | "spaced">("compact", "spaced"))
  .map(([json, way]) => {
    const text = JSON.stringify(json)
    // As Python writes it: a space behind every colon and comma between values, none inside texts.
    return way === "compact"
      ? text
      : text.replace(/"(?:[^"\\]|\\.)*"|[:,]/g, (part) => (part === ":" || part === "," ? `${part} ` : part))
  })
const data = fc.oneof(
  { weight: 20, arbitrary: written },
  {
    weight: 2,
    arbitrary: fc.constantFrom("[DONE]", "[DONE] ", "[DONE", "{", "", " ", "{}", "null", "1", '"}"')
  },
  { weight: 3, arbitrary: fc.tuple(written, fc.nat()).map(([text, at]) => text.slice(0, at % text.length)) }
)
const lineEnd = fc.constantFrom("\n", "\r\n")
const frame = fc
  .tuple(
    fc.constantFrom("", "", "", "", "\n", ": busy\n", "event: message\n", "id: 1\nretry: 5\n"),
    fc.constantFrom("data: ", "data: ", "data:"),
    data,
    fc.constantFrom("", "", "", "", " ", "\nid: 7", "\nevent: message", "\n: comment"),
    lineEnd
  )
  .map(([before, field, text, after, end]) => `${before}${field}${text}${after}\n\n`.replaceAll("\n", end))

describe("the kind of an event, told from its bytes", () => {
  it("is the one that reading its JSON tells, for whatever chunks an upstream sends", () => {
    const seen = new Map<FrameKind, number>()
    fc.assert(
      fc.property(frame, (text) => {
        const [kind, expected] = [kindOf(Buffer.from(text)), slowKindOf(text)]
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
        // To read an event is always right, only slower.
        if (kind === "special") assert.include(["special", "content"], expected)
        // A piece of JSON that happens to end with a brace: only the end of the stream cuts an event, and is read.
        else if (expected === "special" && parse(text.replace(/^data: ?/, "")) === undefined)
          assert.match(text.trim(), /^data:.*\}$/)
        else assert.strictEqual(kind, expected)
      }),
      { numRuns: 5_000 }
    )
    for (const kind of ["content", "special", "done", "comment"] as const)
      assert.isAbove(seen.get(kind) ?? 0, 50, kind)
  })

  it("is content for most events, so that they are passed on unread", () => {
    const plain = `data: {"id":"gen-1","choices":[{"index":0,"delta":{"content":"\\"usage\\": 1"},"finish_reason":null}],"usage":null,"error": null}\n\n`
    assert.strictEqual(kindOf(Buffer.from(plain)), "content")
    assert.strictEqual(kindOf(Buffer.from(plain.replaceAll("\n", "\r\n"))), "content")
  })

  it("is done for [DONE] however it is written, and content for a model that says so", () => {
    for (const text of [
      "data: [DONE]\n\n",
      "data:[DONE]\n\n",
      "data: [DONE]  \r\n\r\n",
      "event: done\ndata: [DONE]\n\n"
    ])
      assert.strictEqual(kindOf(Buffer.from(text)), "done", text)
    assert.strictEqual(
      kindOf(Buffer.from(`data: {"choices":[{"delta":{"content":"[DONE]"}}]}\n\n`)),
      "content"
    )
  })

  it("is special for data that is cut or no object, whose JSON then is read", () => {
    for (const text of ["data: {\n\n", 'data: {"choices":[\n\n', "data: null\n\n", "data: <html>\n\n"])
      assert.strictEqual(kindOf(Buffer.from(text)), "special", text)
  })

  it("does not depend on the fields and comments around the data", () => {
    const data = `data: {"choices":[{"delta":{"content":"a"}}]}`
    for (const text of [`${data}\nid: 7\n\n`, `: busy\n${data}\n\n`, `event: a\n${data}\n\n`])
      assert.strictEqual(kindOf(Buffer.from(text)), "special", text)
    for (const text of ["id: 7\n\n", "data: \n\n", "data\n\n", "delay: {}1\n\n", "\r\n\r\n"])
      assert.strictEqual(kindOf(Buffer.from(text)), "comment", text)
  })

  it("is special for a reason of the end that is an error, even where nothing else says so", () => {
    const text = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}\n\n`
    assert.strictEqual(kindOf(Buffer.from(text)), "special")
  })
})
