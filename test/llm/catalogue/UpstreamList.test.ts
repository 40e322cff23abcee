import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { readUpstreamList, type UpstreamList } from "#streams/llm/UpstreamList.ts"
import { listOf, trappedList, upstreamModel } from "./UpstreamModels.ts"

const read = (text: string): UpstreamList => Result.getOrThrow(readUpstreamList(text))

const faultOf = (text: string): string => {
  const list = readUpstreamList(text)
  return Result.isFailure(list) ? list.failure : `no fault: ${list.success.models.length} models`
}

/** One bad model between two good ones. */
const besides = (bad: unknown): UpstreamList =>
  read(listOf(upstreamModel("good/one"), bad, upstreamModel("good/two")))

const idsOf = ({ models }: UpstreamList): ReadonlyArray<string> => models.map(({ id }) => id)

describe("the upstream's list", () => {
  it("is read in the upstream's order, nothing left out", () => {
    const list = read(trappedList)
    assert.deepStrictEqual(idsOf(list), [
      "acme/large",
      "acme/free:free",
      "router/auto",
      "borealis/talk",
      "borealis/nearly"
    ])
    assert.deepStrictEqual([list.leftOut, list.firstFault], [0, undefined])
  })

  it("is of no use when it is not JSON, has no data array, or nothing in it", () => {
    assert.strictEqual(faultOf(""), "the list is not JSON")
    assert.strictEqual(faultOf("<html>"), "the list is not JSON")
    assert.strictEqual(faultOf(trappedList.slice(0, -1)), "the list is not JSON")
    for (const text of ["null", "[]", "{}", `{"data":{}}`, `{"data":"x"}`, `{"error":{"code":500}}`]) {
      assert.strictEqual(faultOf(text), "the list has no data array", text)
    }
    assert.strictEqual(faultOf(listOf()), "the list is empty")
  })

  it("is of no use when more of its models make no sense than do", () => {
    const bad = { id: "" }
    assert.match(
      faultOf(listOf(upstreamModel("a/b"), bad, bad)),
      /^2 of the list's 3 models make no sense; data\[1\]/
    )
    assert.deepStrictEqual(idsOf(read(listOf(upstreamModel("a/b"), bad))), ["a/b"])
    assert.match(faultOf(listOf(bad)), /^1 of the list's 1 models/)
  })

  it("cut at any byte is of no use", () => {
    for (let length = 0; length < trappedList.length; length++) {
      assert.strictEqual(faultOf(trappedList.slice(0, length)), "the list is not JSON", String(length))
    }
  })

  it("loses single models without a usable id, and counts them", () => {
    const ids = [undefined, null, 7, "", "a b", "a\u0000b", "x".repeat(201), "collection/mine", "good/one"]
    for (const id of ids) {
      const list = besides({ ...upstreamModel("x"), id })
      assert.deepStrictEqual(idsOf(list), ["good/one", "good/two"], String(id))
      assert.strictEqual(list.leftOut, 1)
      assert.match(list.firstFault ?? "", /^data\[1\]: (no usable id|its id came before)$/)
    }
    for (const entry of [null, 1, "x", []]) assert.strictEqual(besides(entry).leftOut, 1)
  })

  it("loses single models with absurd prices, and names the first", () => {
    const prices = [
      "",
      "free",
      "1e",
      "0x1",
      "-0.5",
      "-2",
      "1000.01",
      "1e99",
      null,
      true,
      [],
      {},
      "NaN",
      "Infinity"
    ]
    for (const prompt of prices) {
      const list = besides(upstreamModel("bad/price", { pricing: { prompt, completion: "0" } }))
      assert.deepStrictEqual(idsOf(list), ["good/one", "good/two"], JSON.stringify(prompt))
      assert.match(
        list.firstFault ?? "",
        /^data\[1\]: bad\/price: (pricing\.prompt is no price|no price of tokens)$/
      )
    }
    for (const pricing of [undefined, null, "0", { prompt: "0" }, { completion: "0" }]) {
      assert.strictEqual(besides(upstreamModel("bad/pricing", { pricing })).leftOut, 1)
    }
    const web = besides(
      upstreamModel("bad/web", { pricing: { prompt: "0", completion: "0", web_search: "?" } })
    )
    assert.strictEqual(web.firstFault, "data[1]: bad/web: pricing.web_search is no price")
  })

  it("takes prices as text or numbers, exactly, and an absent request or image as 0", () => {
    const [large, , , talk] = read(trappedList).models
    const shown = (price: Decimal.Decimal | undefined) =>
      price === undefined ? undefined : Decimal.format(price)
    assert.strictEqual(shown(large?.pricing.image), "0.00000008333333333333334")
    assert.strictEqual(shown(talk?.pricing.prompt), "0.0000005")
    assert.strictEqual(shown(talk?.pricing.completion), "0.0000025")
    assert.deepStrictEqual([shown(talk?.pricing.request), shown(talk?.pricing.image)], ["0", "0"])
  })

  it("passes over discounts and prices that are null", () => {
    const pricing = {
      prompt: "0",
      completion: "0",
      image: null,
      discount: 0.5
    }
    const [model] = read(listOf(upstreamModel("a/b", { pricing }))).models
    assert.strictEqual(model?.pricing.isFree, true)
  })

  it("does without everything but id and prices", () => {
    const [model] = read(listOf({ id: "bare", pricing: { prompt: "0", completion: "0" } })).models
    const { pricing: _, ...fields } = model ?? { pricing: undefined }
    assert.deepStrictEqual(fields, {
      id: "bare",
      name: "bare",
      description: "",
      created: 0,
      contextLength: 0,
      maxCompletionTokens: null,
      inputModalities: ["text"],
      takesAnything: true,
      outputModalities: ["text"],
      supportedParameters: []
    })
  })

  it("does without fields of the wrong type", () => {
    const wrong = {
      name: 5,
      created: "yesterday",
      description: null,
      context_length: -3,
      architecture: "text->text",
      top_provider: { context_length: 4_096, max_completion_tokens: 1.5 },
      supported_parameters: ["tools", 7, null]
    }
    const [model] = read(listOf(upstreamModel("a/b", wrong))).models
    assert.deepInclude(model, {
      name: "a/b",
      created: 0,
      description: "",
      contextLength: 4_096,
      maxCompletionTokens: null,
      inputModalities: ["text"],
      supportedParameters: ["tools"]
    })
  })
})
