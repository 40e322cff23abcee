import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Decimal from "#schemas/llm/Decimal.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { markupFactorOf, offeredModel, pricesAt } from "#src/llm/catalogue/CataloguePrices.ts"
import { readUpstreamList } from "#streams/llm/UpstreamList.ts"
import { listOf, trappedList, upstreamModel } from "./UpstreamModels.ts"

const decimal = (text: string): Decimal.Decimal => {
  const parsed = Decimal.parse(text)
  if (parsed === undefined) throw new Error(`${text} is no decimal`)
  return parsed
}

const offered = (list: string, percent = "2"): ReadonlyMap<string, CatalogueModel> =>
  new Map(
    Result.getOrThrow(readUpstreamList(list)).models.map((listed) => [
      listed.id,
      offeredModel(listed, markupFactorOf(decimal(percent)))
    ])
  )

const one = (fields: object, percent?: string): CatalogueModel => {
  const model = offered(listOf(upstreamModel("a/b", fields)), percent).get("a/b")
  if (model === undefined) throw new Error("left out")
  return model
}

const tags = (fields: object): ReadonlyArray<string> => one(fields).categories

describe("an offered model", () => {
  it("costs the upstream's price times 1 + markup, to the last digit, without exponent and trailing zeros", () => {
    assert.deepStrictEqual(offered(trappedList).get("acme/large")?.pricing, {
      prompt: "0.00000051",
      completion: "0.00000306",
      request: "0.01836",
      image: "0.0000000850000000000000068"
    })
    assert.deepStrictEqual(offered(trappedList).get("borealis/talk")?.pricing, {
      prompt: "0.00000051",
      completion: "0.00000255",
      request: "0",
      image: "0"
    })
  })

  it("follows the percentage of its provider exactly", () => {
    const prompt = (percent: string) =>
      one({ pricing: { prompt: "0.0000003", completion: "0" } }, percent).pricing.prompt
    assert.strictEqual(prompt("0"), "0.0000003")
    assert.strictEqual(prompt("0.000001"), "0.000000300000003")
    assert.strictEqual(prompt("12.345678"), "0.000000337037034")
    assert.strictEqual(prompt("1000"), "0.0000033")
    assert.strictEqual(Decimal.format(one({}, "7.5").markupFactor), "1.075")
  })

  it("that routes keeps -1, has no prices of its own, and is not free", () => {
    const router = offered(trappedList, "50").get("router/auto")
    assert.deepStrictEqual(router?.pricing, { prompt: "-1", completion: "-1", request: "0", image: "0" })
    assert.deepStrictEqual(
      [router?.prices, router?.isFree, router?.categories],
      [undefined, false, ["long-context"]]
    )
    assert.strictEqual(one({ pricing: { prompt: -1, completion: "-1.0" } }).pricing.completion, "-1")
  })

  it("is free when every price is 0, absent ones and zeros of any form included", () => {
    assert.isTrue(one({ pricing: { prompt: "0", completion: "0.000" } }).isFree)
    assert.isTrue(one({ pricing: { prompt: 0, completion: "-0", image: "0e5" } }).isFree)
    assert.isFalse(one({ pricing: { prompt: "0", completion: "0", request: "0.001" } }).isFree)
    assert.isFalse(one({ pricing: { prompt: "0", completion: "0", image: "0.001" } }).isFree)
    const long = { prompt: "0", completion: "0", overrides: [{ min_prompt_tokens: 9, prompt: "1" }] }
    assert.isFalse(one({ pricing: long }).isFree)
    assert.isFalse(offered(trappedList).get("borealis/nearly")?.isFree)
    assert.isTrue(offered(trappedList).get("acme/free:free")?.isFree)
  })

  it("is tagged vision, tools, long-context, free, reasoning and audio", () => {
    assert.deepStrictEqual(offered(trappedList).get("acme/large")?.categories, [
      "vision",
      "tools",
      "long-context",
      "reasoning"
    ])
    assert.deepStrictEqual(offered(trappedList).get("acme/free:free")?.categories, [
      "tools",
      "long-context",
      "free"
    ])
    assert.deepStrictEqual(offered(trappedList).get("borealis/talk")?.categories, ["audio"])
    assert.deepStrictEqual(tags({ context_length: 99_999 }), [])
    assert.deepStrictEqual(tags({ context_length: 100_000 }), ["long-context"])
    assert.deepStrictEqual(
      tags({ architecture: { input_modalities: ["text"], output_modalities: ["image"] } }),
      [],
      "vision is what takes images, not what makes them"
    )
    assert.deepStrictEqual(
      tags({ architecture: { input_modalities: ["text"], output_modalities: ["audio"] } }),
      ["audio"]
    )
  })

  it("is charged cached tokens at their price, else at the prompt's; reasoning at its price, else the completion's", () => {
    const shown = (model: CatalogueModel | undefined) =>
      [model?.prices?.cacheRead, model?.prices?.cacheWrite, model?.prices?.reasoning].map((price) =>
        price === undefined ? undefined : Decimal.format(price)
      )
    assert.deepStrictEqual(shown(offered(trappedList).get("acme/large")), [
      "0.000000051",
      "0.00000051",
      "0.00000408"
    ])
    const base = { prompt: "1", completion: "2" }
    assert.deepStrictEqual(
      shown(one({ pricing: { ...base, input_cache_write: "3", internal_reasoning: "0" } })),
      ["1.02", "3.06", "2.04"]
    )
  })

  it("costs more from a length of the prompt on, where the list says so; other conditions are passed over", () => {
    const model = one({
      pricing: {
        prompt: "1",
        completion: "2",
        input_cache_read: "0.5",
        overrides: [
          { min_prompt_tokens: 200_000, prompt: "10", completion: "20" },
          { min_prompt_tokens: 100_000, completion: "3", input_cache_read: "0.75" },
          { min_prompt_tokens: 50_000, prompt: "7", between: "01:00-02:00" },
          { min_prompt_tokens: 50_000, prompt: "7", from_hour: 1 },
          { min_prompt_tokens: 50_000, prompt: "dear" },
          { min_prompt_tokens: 50_000, prompt: "-1" },
          { min_prompt_tokens: -1, prompt: "7" },
          { prompt: "7" },
          "7"
        ]
      }
    })
    const shown = (promptTokens: number) => {
      const prices = pricesAt(model, promptTokens)
      return [prices?.prompt, prices?.completion, prices?.cacheRead].map((price) =>
        price === undefined ? undefined : Decimal.format(price)
      )
    }
    for (const promptTokens of [0, 50_000, 99_999]) {
      assert.deepStrictEqual(shown(promptTokens), ["1.02", "2.04", "0.51"], String(promptTokens))
    }
    for (const promptTokens of [100_000, 199_999]) {
      assert.deepStrictEqual(shown(promptTokens), ["1.02", "3.06", "0.765"], String(promptTokens))
    }
    assert.deepStrictEqual(shown(200_000), ["10.2", "20.4", "0.51"])
    assert.strictEqual(model.pricing.prompt, "1.02")
    assert.isUndefined(pricesAt(one({ pricing: { prompt: "-1", completion: "-1" } }), 1))
  })

  it("belongs to the provider that its id begins with", () => {
    assert.strictEqual(offered(trappedList).get("acme/free:free")?.provider, "acme")
    const [bare] = offered(listOf(upstreamModel("bare"))).values()
    assert.strictEqual(bare?.provider, "bare")
  })
})
