import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { dataOf, eventNameOf, SseFrames } from "#streams/llm/SseFrames.ts"
import { recordedEvents } from "../upstream/Recordings.ts"

/** The frames of a stream that comes in these pieces, and the rest. */
const framesOf = (pieces: ReadonlyArray<Buffer>, maxBytes = 1_000_000) => {
  const frames: Array<string> = []
  const sse = new SseFrames(maxBytes, (frame) => void frames.push(frame.toString("latin1")))
  const isTaken = pieces.every((piece) => sse.push(Buffer.from(piece)))
  return { frames, rest: sse.rest.toString("latin1"), isTaken }
}

/** Slow and plain: everything up to and with each blank line. */
const naive = (bytes: Buffer): { readonly frames: ReadonlyArray<string>; readonly rest: string } => {
  const text = bytes.toString("latin1")
  const frames = text.match(/[^]*?\n\r?\n/g) ?? []
  return { frames, rest: text.slice(frames.join("").length) }
}

/** The data of the complete events, as an event source reads them. Source: HTML standard, 9.2.6. */
const standardData = (text: string): ReadonlyArray<string> => {
  const lines = text
    .replace(/^\uFEFF/, "")
    .replaceAll(/\r\n|\r/g, "\n")
    .split("\n")
    .slice(0, -1)
  const events: Array<string> = []
  let data: Array<string> = []
  for (const line of lines) {
    if (line.startsWith("data:")) data.push(line.slice("data:".length).replace(/^ /, ""))
    if (line === "" && data.length > 0) events.push(data.join("\n"))
    if (line === "") data = []
  }
  return events
}

const cutAt = (bytes: Buffer, places: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
}

const ending = fc.constantFrom("\n", "\r\n")
const line = fc.oneof(
  fc.constantFrom("", ": keep-alive", "event: delta", "id: 7", "data:", "data: [DONE]"),
  fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => `data: ${JSON.stringify(text)}`)
)
const stream = fc
  .array(fc.tuple(line, ending), { maxLength: 20 })
  .map((lines) => Buffer.from(lines.map(([text, end]) => text + end).join("")))

describe("the events of a stream", () => {
  it("are the same wherever a recorded stream is cut in two, with LF and with CRLF", () => {
    for (const lineEnd of ["\n", "\r\n"]) {
      const events = recordedEvents.map((event) => event.replaceAll("\n", lineEnd))
      const bytes = Buffer.from(events.join(""))
      const whole = events.map((event) => Buffer.from(event).toString("latin1"))
      for (let at = 0; at <= bytes.length; at++) {
        const cut = framesOf([bytes.subarray(0, at), bytes.subarray(at)])
        assert.deepStrictEqual(cut, { frames: whole, rest: "", isTaken: true }, `cut at ${at}`)
      }
      const single = framesOf(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))
      assert.deepStrictEqual(single.frames, whole)
    }
  })

  it("are what a plain search for blank lines finds, in whatever pieces the stream comes", () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (bytes, places) => {
        const { frames, rest } = framesOf(cutAt(bytes, places))
        assert.deepStrictEqual({ frames, rest }, naive(bytes))
      }),
      { numRuns: 2_000 }
    )
  })

  it("are those of the HTML standard, however lines end, with a byte order mark or without, in whatever pieces", () => {
    const anyEnding = fc.constantFrom("\n", "\r\n", "\r")
    const anyStream = fc
      .tuple(fc.constantFrom("", "\uFEFF"), fc.array(fc.tuple(line, anyEnding), { maxLength: 20 }))
      .map(([mark, lines]) => mark + lines.map(([text, end]) => text + end).join(""))
    fc.assert(
      fc.property(anyStream, fc.array(fc.nat(), { maxLength: 12 }), (text, places) => {
        const { frames } = framesOf(cutAt(Buffer.from(text), places))
        const heard = frames
          .map((frame) => dataOf(Buffer.from(frame, "latin1")))
          .filter((data) => data !== undefined)
        // The meaning of a CR at the very end is known when the connection ends.
        const expected = standardData(text)
        assert.deepStrictEqual(heard, expected.slice(0, heard.length))
        assert.isAtMost(expected.length - heard.length, text.endsWith("\r") ? 1 : 0)
        assert.notInclude(frames.join("").replaceAll("\r\n", ""), "\r")
      }),
      { numRuns: 3_000 }
    )
  })

  it("are told when they end, not when the next one begins, where lines end with CR alone", () => {
    const { frames } = framesOf([Buffer.from("data: 1\r\r"), Buffer.from("data: 2\r\r")])
    assert.deepStrictEqual(frames, ["data: 1\n\n", "data: 2\n\n"])
  })

  it("may be as long as the limit while they are under way, and not a byte longer", () => {
    const event = Buffer.from(`data: ${"x".repeat(94)}`)
    assert.isTrue(framesOf([event], 100).isTaken)
    assert.isFalse(framesOf([Buffer.concat([event, Buffer.from("y")])], 100).isTaken)
    const ended = Buffer.from("data: 1\n\n")
    const many = framesOf(Array.from({ length: 50 }, () => ended, 10))
    assert.deepStrictEqual([many.isTaken, many.frames.length], [true, 50])
  })
})

describe("the name of an event", () => {
  it("is that of its last field of this kind", () => {
    assert.strictEqual(eventNameOf(Buffer.from("event: error\ndata: x\n\n")), "error")
    assert.strictEqual(eventNameOf(Buffer.from("data: x\r\nevent:error\r\n\r\n")), "error")
    assert.isUndefined(eventNameOf(Buffer.from("data: event: error\n\n")))
  })
})

describe("the data of an event", () => {
  it("is its data lines without one leading space, joined by LF", () => {
    assert.strictEqual(dataOf(Buffer.from("data: a\ndata:b\ndata:  c\n\n")), "a\nb\n c")
    assert.strictEqual(dataOf(Buffer.from("event: x\r\nid: 1\r\ndata: a\r\n\r\n")), "a")
    assert.strictEqual(dataOf(Buffer.from("data\n\n")), undefined)
    assert.strictEqual(dataOf(Buffer.from(": nothing\n\n")), undefined)
  })
})
