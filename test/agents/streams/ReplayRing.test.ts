import { assert, describe, it } from "@effect/vitest"
import { random } from "#bench/traffic/Random.ts"
import { ReplayRing, type SentFrame } from "#streams/agents/ReplayRing.ts"
import { SpokenPart } from "#streams/agents/SpokenPart.ts"

/** The same frames, one by one. */
class PlainRing {
  frames: ReadonlyArray<SentFrame> = []

  get length(): number {
    return this.frames.reduce((sum, { text }) => sum + text.length, 0)
  }

  after(seq: number): ReadonlyArray<string> {
    return this.frames.filter((frame) => frame.seq > seq && frame.role !== "request").map(({ text }) => text)
  }
}

const seed = 20_261_129

describe("frames kept for a resume", () => {
  it("are those that were sent, whatever was forgotten, dropped and acknowledged between", () => {
    const next = random(seed)
    const upTo = (most: number): number => Math.floor(next() * most)
    for (let run = 0; run < 200; run++) {
      const [ring, plain] = [new ReplayRing(), new PlainRing()]
      let seq = 0
      let part = new SpokenPart("p", "text_delta", "m0", 0)
      for (let step = 0; step < 300; step++) {
        const choice = upTo(20)
        if (choice < 14) {
          const delta = ["a", '\n"', "…", "𝄞 long ".repeat(upTo(9))][upTo(4)] ?? ""
          const text = part.frame(++seq, delta)
          ring.addPiece(part, seq, delta, text.length)
          plain.frames = [...plain.frames, { seq, text, role: "delta", messageId: part.messageId }]
        } else if (choice === 14) part = new SpokenPart("p", "thinking_delta", `m${upTo(3)}`, upTo(2))
        else if (choice < 17) {
          const role = (["other", "request", "end"] as const)[upTo(3)] ?? "other"
          const frame: SentFrame = { seq: ++seq, text: `{"seq":${seq}}`, role, messageId: `m${upTo(3)}` }
          ring.add(frame)
          plain.frames = [...plain.frames, frame]
        } else if (choice === 17) {
          const messageId = `m${upTo(3)}`
          ring.forget(messageId)
          plain.frames = plain.frames.filter(
            (frame) => frame.role !== "delta" || frame.messageId !== messageId
          )
        } else {
          // A run goes as a whole: an acknowledgment may leave more than it says, a limit less.
          const dropped = choice === 18 ? ring.dropUpTo(upTo(seq + 1)) : ring.trimTo(upTo(ring.length + 1))
          plain.frames = plain.frames.filter((frame) => frame.seq > dropped)
        }
        const from = upTo(seq + 1)
        assert.deepStrictEqual(
          [...ring.framesAfter(from)],
          plain.after(from),
          `seed ${seed}, run ${run}, step ${step}`
        )
        assert.strictEqual(ring.length, plain.length, `seed ${seed}, run ${run}, step ${step}`)
      }
    }
  })

  it("are no more than asked for, and none that was not acknowledged goes", () => {
    const ring = new ReplayRing()
    const part = new SpokenPart("p", "text_delta", "m", 0)
    for (let seq = 1; seq <= 2_000; seq++) ring.addPiece(part, seq, "x", part.frame(seq, "x").length)
    assert.isAtMost(ring.dropUpTo(700), 700)
    assert.include([...ring.framesAfter(700)], part.frame(701, "x"))
    const dropped = ring.trimTo(100_000)
    assert.isAtMost(ring.length, 100_000)
    assert.strictEqual([...ring.framesAfter(0)][0], part.frame(dropped + 1, "x"))
  })
})

describe("a piece's frame", () => {
  it("is the JSON of its fields, its number in front", () => {
    for (const delta of ["", '"\\\n', "\u2028 \ud800", "𝄞"]) {
      const fields = { promptId: 'p"1', kind: "text_delta", messageId: "m", contentIndex: 3, delta }
      assert.strictEqual(
        new SpokenPart('p"1', "text_delta", "m", 3).frame(17, delta),
        JSON.stringify({ type: "event", seq: 17, ...fields })
      )
    }
  })
})
