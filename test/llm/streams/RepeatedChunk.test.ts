import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { parseRecord } from "#streams/llm/ChatChunk.ts"
import { RepeatedChunk } from "#streams/llm/RepeatedChunk.ts"
import { dataOf } from "#streams/llm/SseFrames.ts"
import { recordedEvents } from "../upstream/Recordings.ts"

/** Slow and plain: every event is read for itself. */
const plain = (frame: Buffer) => {
  const data = dataOf(frame)
  return data === undefined ? undefined : parseRecord(data)
}

/** Texts that stand in the bytes as they are, texts that are escaped there, and texts that look like a chunk's own. */
const said = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 8 }),
  fc.string({ unit: "binary", maxLength: 4 }),
  fc.constantFrom("", " world", '"', "\\", '"content":"x"', "\n", "\u0001", "\u007f", "\ud800", "世界 👋")
)
/** A chunk with a content, as upstreams write it. */
type Form = (content: string) => unknown

const choice = (delta: unknown) => ({ index: 0, delta, finish_reason: null })
const forms: ReadonlyArray<Form> = [
  (content) => ({ id: "gen-1", choices: [choice({ content })] }),
  (content) => ({
    id: "gen-1",
    choices: [choice({ role: "assistant", content, reasoning: null })],
    usage: null
  }),
  (content) => ({ id: "gen-2", choices: [choice({ refusal: { content: "inner" }, content })] }),
  (content) => ({ choices: [choice({ content })], padding: "x".repeat(9_000) }),
  (content) => ({ content: "outside", choices: [choice({ content })] }),
  (content) => ({ content, choices: [choice({ content: "same" })] }),
  (content) => ({ choices: [choice({ content: "first" }), choice({ content })] }),
  (content) => ({ choices: [choice({ content }), choice({ content: "second" })] }),
  (content) => ({ choices: [choice({ content })], obfuscation: content }),
  (content) => ({ choices: [choice({ reasoning: content, content: null })] }),
  () => ({ choices: [] }),
  () => ({ choices: [{ delta: {}, finish_reason: "stop" }] }),
  (content) => ({ choices: [choice({ content: [content] })] })
]
type Writing = (json: string) => string
const writings: ReadonlyArray<Writing> = [
  (json) => `data: ${json}\n\n`,
  (json) => `data: ${json.replaceAll('":', '": ')}\n\n`,
  (json) => `data: ${json.replace('"content":"', '"content":"\\u0041')}\n\n`,
  (json) => `data: ${json.replace('"content":"', '"content":"first","content":"')}\n\n`,
  (json) => `data: ${json.slice(0, -1)}\n\n`,
  // A control character as it is, which no JSON has.
  (json) => `data: ${json.replace('"content":"', '"content":"\u0001')}\n\n`,
  (json) => `data: ${json.replace('"content":"', '"content":\ndata: "')}\n\n`,
  (json) => `data: ${json}\r\n\r\n`,
  (json) => `event: x\ndata:${json}\n\n`,
  (json) => `: ${json}\n\n`,
  (json) => `data: ${json}\n`
]
/** Mostly the first form and writing of a stream, and at times others. */
const stream = fc
  .tuple(fc.constantFrom(...forms), fc.constantFrom(...writings))
  .chain(([usualForm, usualWriting]) =>
    fc.array(
      fc.record({
        content: said,
        form: fc.oneof({ weight: 9, arbitrary: fc.constant(usualForm) }, fc.constantFrom(...forms)),
        writing: fc.oneof({ weight: 9, arbitrary: fc.constant(usualWriting) }, fc.constantFrom(...writings)),
        /** a byte of it is put in the place of another, which leaves a text that is no UTF-8, or no JSON */
        harm: fc.oneof(
          { weight: 12, arbitrary: fc.constant(undefined) },
          fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) })
        )
      }),
      { maxLength: 16 }
    )
  )
  .map((events) =>
    events.map(({ content, form, harm, writing }) => {
      const frame = Buffer.from(writing(JSON.stringify(form(content))))
      if (harm !== undefined) frame[harm.at % frame.length] = harm.byte
      return frame
    })
  )

const assertSame = (frames: ReadonlyArray<Buffer>): void => {
  const chunks = new RepeatedChunk()
  for (const frame of frames) assert.deepStrictEqual(chunks.read(frame), plain(frame), frame.toString())
}

describe("chunks that repeat but for their content", () => {
  it("are read as each for itself", () => {
    fc.assert(fc.property(stream, assertSame), { numRuns: 5_000 })
    assertSame(recordedEvents.map((event) => Buffer.from(event)))
  })

  it("are given again with another content, and those with more that differs are not", () => {
    const chunks = new RepeatedChunk()
    const of = (content: string, id = "gen-1") =>
      chunks.read(
        Buffer.from(`data: ${JSON.stringify({ id, choices: [{ index: 0, delta: { content } }] })}\n\n`)
      )
    of("Hello")
    const again = of(" world")
    assert.strictEqual(of("!"), again)
    assert.notStrictEqual(of('"'), again)
    assert.notStrictEqual(of("!", "gen-2"), again)
  })
})
