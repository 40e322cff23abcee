import { assert, describe, it } from "@effect/vitest"
import { chunkOf, textOf, chunksOf } from "#streams/llm/ChatChunk.ts"
import { withoutCosts } from "#streams/llm/UpstreamUsage.ts"

describe("a whole answer as chunks", () => {
  it("says the same in each of its choices, then ends them, then tells its usage", () => {
    const choices = ["one", "two"].map((content, index) => ({
      index,
      message: { role: "assistant", content, reasoning: "hm " },
      finish_reason: index === 0 ? "stop" : "length",
      logprobs: null
    }))
    const usage = { prompt_tokens: 1, completion_tokens: 2 }
    const whole = { id: "gen-1", object: "chat.completion", provider: "x", choices, usage }
    const chunks = chunksOf(whole)
    assert.strictEqual(chunks.map(textOf).join(""), "hm onehm two")
    assert.deepStrictEqual(
      chunks.map((chunk) => [chunk["id"], chunk["provider"], chunk["object"]]),
      chunks.map(() => ["gen-1", "x", "chat.completion.chunk"])
    )
    assert.deepStrictEqual(
      chunks.map((chunk) => chunkOf(chunk).finished),
      [[], [0, 1], []]
    )
    assert.strictEqual(chunkOf(chunks[1] ?? {}).finishReason, "stop")
    assert.deepStrictEqual(chunks.at(-1)?.["usage"], usage)
  })

  it("is made of whatever comes: choices that are none, no usage, an error", () => {
    for (const choices of [undefined, null, "x", [], [null], [{ message: "x" }], [{ index: "a" }]]) {
      const chunks = chunksOf({ choices })
      assert.strictEqual(chunks.length, 2)
      assert.isFalse(chunks.some((chunk) => chunkOf(chunk).hasContent))
    }
    assert.strictEqual(chunkOf(chunksOf({ error: { message: "No" } })[0] ?? {}).error?.message, "No")
  })
})

describe("what an upstream charges", () => {
  it("is left out beside the choices and in every usage, and nothing else is", () => {
    const spent = { cost: 1, cost_details: { upstream: 1 }, is_byok: false, prompt_tokens: 3 }
    const kept = { prompt_tokens: 3 }
    assert.deepStrictEqual(
      withoutCosts({
        ...spent,
        choices: [{ usage: spent, delta: { content: "cost", image: { cost: "drawn" } } }],
        x_groq: { usage: spent, cost: "theirs" },
        usage: spent
      }),
      {
        ...kept,
        choices: [{ usage: kept, delta: { content: "cost", image: { cost: "drawn" } } }],
        x_groq: { usage: kept, cost: "theirs" },
        usage: kept
      }
    )
    const none = { id: "a", choices: [{ delta: { content: "x" } }], usage: null }
    assert.strictEqual(withoutCosts(none), none)
  })

  it("is not looked for without end", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`)
    assert.strictEqual(withoutCosts(deep), deep)
  })
})
