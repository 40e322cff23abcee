import { assert, describe, it } from "@effect/vitest"
import { shortened, textBefore } from "#streams/agents/ChatContext.ts"
import type { Step, StepBody } from "#streams/agents/Step.ts"

const prompt = (text: string): StepBody => ({ kind: "prompt", id: text, text, images: [] })

const compaction = (summary: string, keepFrom: number): StepBody => ({
  kind: "compaction",
  summary,
  keepFrom,
  tokens: 0,
  usage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
  cost: "0",
  covered: false
})

const stepsOf = (...bodies: ReadonlyArray<StepBody>): ReadonlyArray<Step> =>
  bodies.map((body, index) => ({ index, seq: 0, promptId: "", at: 0, body }))

describe("the text that is to be summarised", () => {
  it("is everything before the cut, in order", () => {
    const steps = stepsOf(prompt("one"), prompt("two"), prompt("three"))
    assert.strictEqual(textBefore(steps, 2), "user: one\n\nuser: two")
  })

  it("begins with the summary of an earlier compaction, and has nothing twice that is in it", () => {
    const earlier = compaction("One was said.", 1)
    const steps = stepsOf(
      prompt("one"),
      prompt("two"),
      prompt("three"),
      earlier,
      prompt("four"),
      prompt("five")
    )
    const summary = "Summary of what came before:\nOne was said."
    assert.strictEqual(textBefore(steps, 2), `${summary}\n\nuser: two`)
    assert.strictEqual(textBefore(steps, 5), `${summary}\n\nuser: two\n\nuser: three\n\nuser: four`)
  })

  it("loses its middle where it is too long: neither what was asked for nor what was done last", () => {
    const text = `the wish${" and more".repeat(1_000)} the end`
    const short = shortened(text, 400)
    assert.isTrue(short.startsWith("the wish") && short.endsWith("the end"))
    assert.include(short, "left out")
    assert.isAtMost(short.length, 450)
    assert.strictEqual(shortened(text, text.length), text)
  })
})
