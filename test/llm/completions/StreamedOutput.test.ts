import { assert, describe, it } from "@effect/vitest"
import { random } from "#bench/traffic/Random.ts"
import { StreamedOutput } from "#src/llm/calls/StreamedOutput.ts"
import { readChunk } from "#streams/llm/ChatChunk.ts"
import { event, finishes, recordedText, recordedEvents, says } from "../upstream/Recordings.ts"

const producedOf = (frames: ReadonlyArray<string>, keptMax = 1_000_000): StreamedOutput => {
  const produced = new StreamedOutput(keptMax)
  for (const frame of frames) {
    produced.add(Buffer.from(frame))
    produced.read(readChunk(frame.slice("data: ".length)) ?? assert.fail(frame))
  }
  return produced
}

describe("what a stream has produced", () => {
  it("is its text, with reasoning, calls of tools and refusals", () => {
    assert.deepStrictEqual(producedOf(recordedEvents.slice(0, 5)).text(), { text: recordedText, factor: 1 })
    const delta = {
      reasoning: "hm ",
      tool_calls: [{ index: 0, function: { name: "weather", arguments: `{"city":` } }],
      refusal: " no"
    }
    const { text } = producedOf([event({ choices: [{ index: 0, delta }] }), says(" so")]).text()
    assert.strictEqual(text, `hm  noweather{"city": so`)
  })

  it("has ended when every choice that has begun has, and as many as have to", () => {
    const [first, second] = [0, 1].map((index) => ({
      says: event({ choices: [{ index, delta: { content: "a" }, finish_reason: null }] }),
      ends: event({ choices: [{ index, delta: {}, finish_reason: "stop" }] })
    }))
    assert.isDefined(first)
    assert.isDefined(second)
    assert.isFalse(producedOf([first.says]).hasFinished())
    assert.isTrue(producedOf([first.says, first.ends]).hasFinished())
    assert.isFalse(producedOf([first.says, first.ends]).hasFinished(2))
    assert.isFalse(producedOf([first.says, second.says, first.ends]).hasFinished())
    assert.isTrue(producedOf([second.says, first.says, second.ends, first.ends]).hasFinished(2))
  })

  it("ends for the reason that its last events give", () => {
    assert.isUndefined(producedOf([says("a")]).finishReason)
    assert.strictEqual(producedOf([says("a"), finishes("length")]).finishReason, "length")
    assert.strictEqual(
      producedOf([says("a"), finishes("tool_calls"), event({ choices: [] })]).finishReason,
      "tool_calls"
    )
  })

  it("is a token for every event at least, and more for long ones", () => {
    assert.strictEqual(producedOf([]).tokens, 0)
    assert.strictEqual(producedOf(Array.from({ length: 7 }, () => says("a"))).tokens, 7)
    const long = producedOf([says("a"), says("x".repeat(4_001)), says("a")])
    assert.strictEqual(long.tokens, 1_000)
  })

  it("keeps so many bytes of it, and says how many times as much there was", () => {
    const frame = says("abcd")
    const { factor, text } = producedOf(
      Array.from({ length: 8 }, () => frame),
      frame.length * 2
    ).text()
    assert.deepStrictEqual([text, factor], ["abcdabcd", 4])
    assert.strictEqual(producedOf([frame, finishes("stop")], 0).finishReason, "stop")
  })

  it("is whole however long its events are", () => {
    const next = random(20_261_129)
    const texts = Array.from(
      { length: 400 },
      (_, place) => `${place} ${"é".repeat(Math.floor(next() * 40) ** 2)}`
    )
    assert.deepStrictEqual(producedOf(texts.map((text) => says(text))).text(), {
      text: texts.join(""),
      factor: 1
    })
  })

  it("is a copy: the bytes of the wire are used again", () => {
    const produced = new StreamedOutput(1_000)
    const bytes = Buffer.from(says("mine"))
    produced.add(bytes)
    bytes.fill(0)
    assert.strictEqual(produced.text().text, "mine")
  })
})
