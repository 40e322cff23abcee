import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { readUsage, withoutCost } from "#streams/llm/UpstreamUsage.ts"

const good = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 }

const impossible: ReadonlyArray<unknown> = [
  -1,
  1.5,
  1e15,
  1_000_000_001,
  Number.MAX_VALUE,
  "9",
  null,
  true,
  [9],
  { tokens: 9 }
]

describe("the usage that an upstream tells", () => {
  it("counts as it stands where it can be true", () => {
    const details = {
      ...good,
      cost: 0.00001234,
      prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 1 }
    }
    assert.deepStrictEqual(readUsage(details), {
      promptTokens: 9,
      completionTokens: 4,
      cachedTokens: 3,
      cacheWriteTokens: 2,
      reasoningTokens: 1,
      cost: Decimal.parse("0.00001234")
    })
  })

  it("has no completion tokens for embeddings, and no details where none are told", () => {
    assert.deepStrictEqual(readUsage({ prompt_tokens: 9, total_tokens: 9 }), {
      promptTokens: 9,
      completionTokens: 0,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      cost: undefined
    })
  })

  it("does not count at all where its prompt or completion tokens cannot be true", () => {
    for (const value of impossible) {
      assert.isUndefined(readUsage({ ...good, prompt_tokens: value }), `prompt ${JSON.stringify(value)}`)
      // null is how some say that there were none.
      if (value === null) continue
      assert.isUndefined(
        readUsage({ ...good, completion_tokens: value }),
        `completion ${JSON.stringify(value)}`
      )
    }
    for (const value of [undefined, null, "usage", 1, [], [good], {}]) assert.isUndefined(readUsage(value))
  })

  it("loses only the detail or the cost that cannot be true", () => {
    for (const value of [-1, 0.5, "3", 1e15]) {
      const usage = readUsage({
        ...good,
        prompt_tokens_details: { cached_tokens: value, cache_write_tokens: value },
        completion_tokens_details: { reasoning_tokens: value }
      })
      assert.deepInclude(usage, { ...zeros, promptTokens: 9, completionTokens: 4 }, JSON.stringify(value))
    }
    for (const cost of [-0.1, "0.5", null, {}]) assert.isUndefined(readUsage({ ...good, cost })?.cost)
    assert.deepStrictEqual(readUsage({ ...good, cost: 0 })?.cost, Decimal.zero)
  })

  it("never has parts that are more than the whole, whatever the upstream says", () => {
    const tokens = fc.oneof(fc.nat(20), fc.constantFrom(...impossible))
    const told = fc.record({
      prompt_tokens: tokens,
      completion_tokens: tokens,
      prompt_tokens_details: fc.oneof(
        fc.constant(null),
        fc.record({ cached_tokens: tokens, cache_write_tokens: tokens })
      ),
      completion_tokens_details: fc.oneof(fc.constant("none"), fc.record({ reasoning_tokens: tokens })),
      cost: fc.double()
    })
    fc.assert(
      fc.property(told, (value) => {
        const usage = readUsage(value)
        if (usage === undefined) return
        const { cacheWriteTokens, cachedTokens, completionTokens, cost, promptTokens, reasoningTokens } =
          usage
        assert.isAtMost(cachedTokens + cacheWriteTokens, promptTokens)
        assert.isAtMost(reasoningTokens, completionTokens)
        for (const count of [cachedTokens, cacheWriteTokens, reasoningTokens, promptTokens, completionTokens])
          assert.isTrue(Number.isSafeInteger(count) && count >= 0)
        assert.isTrue(cost === undefined || cost.units >= 0n)
      }),
      { numRuns: 2_000 }
    )
  })
})

const zeros = { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }

describe("the usage that a client is told", () => {
  it("is the upstream's without what the upstream charges", () => {
    const told = { ...good, cost: 1, cost_details: { upstream_inference_cost: 1 }, is_byok: false, other: 5 }
    assert.deepStrictEqual(withoutCost(told), { ...good, other: 5 })
  })
})
