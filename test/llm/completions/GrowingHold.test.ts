import { assert, describe, it } from "@effect/vitest"
import type { Admission } from "#src/llm/ledger/Admission.ts"
import { GrowingHold } from "#src/llm/calls/Settling.ts"
import { nothingDrawn } from "#streams/llm/CallRecord.ts"

/** A hold of 100 tokens that can be made to cover so many at most; the amounts requested, in order. */
const admissionOf = (most: number) => {
  const asked: Array<number> = []
  const admission: Admission = {
    covered: false,
    outputTokens: 100,
    clamped: false,
    extend: async (tokens) => {
      asked.push(tokens)
      return Math.max(100, Math.min(most, tokens))
    },
    settle: () => nothingDrawn,
    release: () => undefined
  }
  return { admission, asked }
}

/** Lets the answers of extensions come in. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe("the hold of a stream", () => {
  it("is extended by a step when half a step of it is left, once at a time, and the stream goes on", async () => {
    const { admission, asked } = admissionOf(10_000)
    const hold = new GrowingHold(admission, true, 40)
    for (let tokens = 1; tokens <= 80; tokens++) assert.isFalse(hold.isUsedUp(tokens))
    assert.deepStrictEqual(asked, [])
    for (let tokens = 81; tokens <= 90; tokens++) assert.isFalse(hold.isUsedUp(tokens))
    assert.deepStrictEqual(asked, [140])
    await turn()
    assert.isFalse(hold.isUsedUp(120))
    assert.deepStrictEqual(asked, [140])
    assert.isFalse(hold.isUsedUp(121))
    assert.deepStrictEqual(asked, [140, 180])
  })

  it("asks for what was produced meanwhile as well", async () => {
    const { admission, asked } = admissionOf(10_000)
    const hold = new GrowingHold(admission, true, 40)
    assert.isFalse(hold.isUsedUp(500))
    assert.deepStrictEqual(asked, [540])
    await turn()
    assert.isFalse(hold.isUsedUp(510))
  })

  it("is used up when no more is to be had and all of it was produced", async () => {
    const { admission, asked } = admissionOf(110)
    const hold = new GrowingHold(admission, true, 40)
    hold.isUsedUp(90)
    await turn()
    assert.isFalse(hold.isUsedUp(109))
    assert.isTrue(hold.isUsedUp(110))
    assert.deepStrictEqual(asked, [140], "nobody asks twice for what is not there")
  })

  it("never grows for a stream whose most was held from the beginning, and ends one that goes on", () => {
    const { admission, asked } = admissionOf(10_000)
    const hold = new GrowingHold(admission, false, 40)
    assert.isFalse(hold.isUsedUp(124), "the model may count otherwise")
    assert.isTrue(hold.isUsedUp(125))
    assert.deepStrictEqual(asked, [])
  })
})
