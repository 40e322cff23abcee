import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { type ChatRequest, readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { holdOf, tooLong } from "#src/llm/calls/Estimate.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"
import { settle } from "#src/llm/calls/Settling.ts"
import { awaited } from "#src/llm/calls/Soon.ts"
import type { Candidates } from "#src/llm/calls/Candidates.ts"
import { limits } from "#src/Limits.ts"
import { nothingDrawn } from "#streams/llm/CallRecord.ts"
import { catalogueModel } from "./Models.ts"

const read = (fields: object): ChatRequest => {
  const messages = [{ role: "user", content: "123456" }]
  const request = readChatRequest({ model: "acme/model", messages, ...fields })
  return request instanceof RequestFault ? assert.fail(request.problem) : request
}

/** Costs so many pico-dollars for a token of the prompt, one of the answer, and an image. */
const priced = (prompt: bigint, completion: bigint, image = 0n, fields: Partial<CatalogueModel> = {}) => {
  const [forPrompt, forCompletion] = [prompt, completion].map((units) => ({ units, scale: 12 }))
  const prices = catalogueModel().prices ?? assert.fail("no prices")
  return catalogueModel({
    prices: {
      ...prices,
      prompt: forPrompt ?? assert.fail(),
      completion: forCompletion ?? assert.fail(),
      image: { units: image, scale: 12 }
    },
    ...fields
  })
}
const target = (
  primary: ReadonlyArray<CatalogueModel>,
  vision: ReadonlyArray<CatalogueModel> = []
): Candidates => ({
  collection: undefined,
  autoRoute: true,
  vision,
  primary
})
const hold = (fields: object, models: Candidates = target([priced(1n, 1_000n)])) =>
  holdOf(read(fields), models, limits)

/** Six bytes, the overhead of one message, and that of every conversation. */
const prompt = 6 + 16 + 128

describe("what a call asks to be held", () => {
  it("is for the tokens wanted, times the answers wanted, and no more than a model gives", () => {
    const short = target([priced(1n, 1_000n, 0n, { maxCompletionTokens: 100 })])
    assert.strictEqual(hold({ max_tokens: 7 }).outputTokens, 7)
    assert.strictEqual(hold({ max_tokens: 7, n: 3 }).outputTokens, 21)
    assert.strictEqual(hold({ max_tokens: 5_000 }, short).outputTokens, 100)
    assert.strictEqual(hold({}).outputTokens, 8_192)
    assert.strictEqual(hold({}, short).outputTokens, 100)
    assert.strictEqual(hold({ stream: true, n: 2 }).outputTokens, 2_048)
    assert.strictEqual(hold({ stream: true, max_tokens: 7 }).outputTokens, 7)
    assert.strictEqual(hold({ n: 4 }).outputTokensMin, 4)
  })

  it("is what the dearest of those who may answer takes; free ones take nothing", () => {
    const models = target([priced(5n, 10n), priced(1n, 1_000n), catalogueModel({ isFree: true })])
    const { costOf, promptTokens } = hold({}, models)
    assert.strictEqual(promptTokens, prompt)
    assert.strictEqual(costOf(0), BigInt(5 * prompt))
    assert.strictEqual(costOf(100), BigInt(prompt) + 100_000n)
    assert.strictEqual(hold({}, target([catalogueModel({ isFree: true })])).costOf(100), 0n)
  })

  it("counts images where they are seen, and both stages where they are described", () => {
    const image = { type: "image_url", image_url: { url: "https://a.example/b.png" } }
    const messages = [{ role: "user", content: [{ type: "text", text: "123456" }, image, image] }]
    const seen = prompt + 10_000
    const direct = hold({ messages }, target([priced(1n, 0n, 10_000n)]))
    assert.deepStrictEqual([direct.promptTokens, direct.costOf(0)], [seen, BigInt(seen) + 20_000n])
    const staged = hold({ messages }, target([priced(1n, 1_000n)], [priced(2n, 3n, 10_000n)]))
    const described = limits.visionTokens
    assert.strictEqual(staged.promptTokens, prompt + described + seen + described)
    const vision = BigInt(2 * seen + 3 * described) + 20_000n
    assert.strictEqual(staged.costOf(10), vision + BigInt(prompt + described) + 10_000n)
    assert.deepStrictEqual(staged.models.length, 2)
  })

  it("is refused where no model of these can hold the text, and only then", () => {
    const models = target([100, 1_000].map((contextLength) => catalogueModel({ contextLength })))
    const text = (length: number) => read({ messages: [{ role: "user", content: "x".repeat(length) }] })
    assert.isUndefined(tooLong(text(16_015), models))
    assert.deepInclude(tooLong(text(16_016), models), { param: "messages", code: "context_length_exceeded" })
    assert.isUndefined(
      tooLong(text(1_000_000), target([catalogueModel({ contextLength: 0 })])),
      "nobody knows how long"
    )
  })
})

describe("the settlement of a call", () => {
  it("asks for more where it cost more than was held, as many tokens as pay it, and not one more than needed", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.bigInt({ min: 1n, max: 10n ** 7n }),
        fc.bigInt({ min: 0n, max: 10n ** 12n }),
        fc.nat(1_000),
        async (perToken, cost, held) => {
          const costOf = (tokens: number) => 1_000n + perToken * BigInt(tokens)
          let covers = held
          const admission = {
            covered: false,
            outputTokens: held,
            clamped: false,
            extend: async (tokens: number) => (covers = tokens),
            settle: () => nothingDrawn,
            release: () => undefined
          }
          await Effect.runPromise(
            awaited(settle(admission, { costOf, promptTokens: 5, growsTo: Infinity }, { cost, tokens: 10 }))
          )
          assert.isTrue(costOf(covers) >= cost)
          assert.isTrue(covers === held || costOf(covers - 1) <= cost)
        }
      )
    )
  })

  it("of a covered call asks for the tokens that it took beyond the hold", async () => {
    const extended: Array<number> = []
    const admission = {
      covered: true,
      outputTokens: 10,
      clamped: false,
      extend: async (tokens: number) => extended.push(tokens),
      settle: () => nothingDrawn,
      release: () => undefined
    }
    const ask = { costOf: () => 0n, promptTokens: 5, growsTo: Infinity }
    await Effect.runPromise(awaited(settle(admission, ask, { cost: 10n ** 12n, tokens: 15 })))
    assert.deepStrictEqual(extended, [])
    await Effect.runPromise(awaited(settle(admission, ask, { cost: 0n, tokens: 40 })))
    assert.deepStrictEqual(extended, [35])
  })
})
