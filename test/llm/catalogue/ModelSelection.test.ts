import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { ModelQuery } from "#schemas/llm/Model.ts"
import { modelSorts } from "#schemas/llm/Model.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { markupFactorOf, offeredModel } from "#src/llm/catalogue/CataloguePrices.ts"
import { isFiltered, selectModels } from "#src/llm/catalogue/ModelSelection.ts"
import { readUpstreamList } from "#streams/llm/UpstreamList.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { listOf, trappedList, upstreamModel } from "./UpstreamModels.ts"

const twoPercent = markupFactorOf({ units: 2n, scale: 0 })

const offered = (list: string): ReadonlyArray<CatalogueModel> =>
  Result.getOrThrow(readUpstreamList(list)).models.map((listed) => offeredModel(listed, twoPercent))

const trapped = offered(trappedList)

const ids = (query: ModelQuery, models = trapped): ReadonlyArray<string> =>
  selectModels(models, query).page.map(({ id }) => id)

describe("a selection of models", () => {
  it("without parameters is all of them by name, capital letters or not", () => {
    assert.deepStrictEqual(ids({}), [
      "acme/free:free",
      "acme/large",
      "router/auto",
      "borealis/talk",
      "borealis/nearly"
    ])
    assert.deepStrictEqual(selectModels(trapped, {}).total, 5)
  })

  it("search: a part of id, name or description, in any case", () => {
    assert.deepStrictEqual(ids({ search: "ROUTER/" }), ["router/auto"])
    assert.deepStrictEqual(ids({ search: "borealis: n" }), ["borealis/nearly"])
    assert.deepStrictEqual(ids({ search: "thinks" }), ["acme/large"])
    assert.deepStrictEqual(ids({ search: "" }).length, 5)
    assert.deepStrictEqual(ids({ search: "nobody" }), [])
    assert.deepStrictEqual(ids({ search: ".*" }), [], "it is text and no pattern")
  })

  it("category: every tag has to be there", () => {
    assert.deepStrictEqual(ids({ category: "tools" }), ["acme/free:free", "acme/large"])
    assert.deepStrictEqual(ids({ category: "tools,vision" }), ["acme/large"])
    assert.deepStrictEqual(ids({ category: " Tools , FREE ," }), ["acme/free:free"])
    assert.deepStrictEqual(ids({ category: "free,vision" }), [])
    assert.deepStrictEqual(ids({ category: "no-such-tag" }), [])
    assert.deepStrictEqual(ids({ category: "," }).length, 5)
  })

  it("input_modality: every modality has to be there", () => {
    assert.deepStrictEqual(ids({ input_modality: "image" }), ["acme/large"])
    assert.deepStrictEqual(ids({ input_modality: "text,audio" }), ["borealis/talk"])
    assert.deepStrictEqual(ids({ input_modality: "text" }).length, 5)
    assert.deepStrictEqual(ids({ input_modality: "video" }), [])
  })

  it("free and tools: true filters, false does not", () => {
    assert.deepStrictEqual(ids({ free: true }), ["acme/free:free"])
    assert.deepStrictEqual(ids({ tools: true }), ["acme/free:free", "acme/large"])
    assert.deepStrictEqual(ids({ free: false, tools: false }).length, 5)
  })

  it("min_context: at least so many tokens", () => {
    assert.deepStrictEqual(ids({ min_context: 100_000 }), ["acme/free:free", "acme/large", "router/auto"])
    assert.deepStrictEqual(ids({ min_context: 100_001 }), ["acme/large", "router/auto"])
  })

  it("max_prompt_price: USD per million tokens with the markup in it, exactly; a router model fails it", () => {
    // 0.0000005 * 1.02 * 1,000,000
    assert.deepStrictEqual(ids({ max_prompt_price: 0.51 }), [
      "acme/free:free",
      "acme/large",
      "borealis/talk",
      "borealis/nearly"
    ])
    assert.deepStrictEqual(ids({ max_prompt_price: 0.509999999999 }), ["acme/free:free", "borealis/nearly"])
    assert.deepStrictEqual(ids({ max_prompt_price: 0 }), ["acme/free:free", "borealis/nearly"])
    assert.notInclude(ids({ max_prompt_price: 1e9 }), "router/auto")
  })

  it("sort: by each of its six orders, a router model last by price either way", () => {
    assert.deepStrictEqual(ids({ sort: "name" }), ids({}))
    assert.deepStrictEqual(ids({ sort: "newest" }), [
      "router/auto",
      "acme/large",
      "acme/free:free",
      "borealis/nearly",
      "borealis/talk"
    ])
    assert.deepStrictEqual(ids({ sort: "price-asc" }), [
      "acme/free:free",
      "borealis/nearly",
      "borealis/talk",
      "acme/large",
      "router/auto"
    ])
    assert.deepStrictEqual(ids({ sort: "price-desc" }), [
      "acme/large",
      "borealis/talk",
      "acme/free:free",
      "borealis/nearly",
      "router/auto"
    ])
    assert.deepStrictEqual(ids({ sort: "context-desc" }), [
      "router/auto",
      "acme/large",
      "acme/free:free",
      "borealis/talk",
      "borealis/nearly"
    ])
    assert.deepStrictEqual(ids({ sort: "context-asc" }), [
      "borealis/nearly",
      "borealis/talk",
      "acme/free:free",
      "acme/large",
      "router/auto"
    ])
  })

  it("limit and offset: a page of what matches, with the total of all", () => {
    assert.deepStrictEqual(ids({ limit: 2 }), ["acme/free:free", "acme/large"])
    assert.deepStrictEqual(ids({ limit: 2, offset: 4 }), ["borealis/nearly"])
    assert.deepStrictEqual(ids({ offset: 3 }), ["borealis/talk", "borealis/nearly"])
    assert.deepStrictEqual(selectModels(trapped, { limit: 1, offset: 99 }), { total: 5, page: [] })
    assert.deepStrictEqual(selectModels(trapped, { tools: true, limit: 1 }).total, 2)
  })

  it("counts as filtered with each filter, and not with order, page, false or empty ones", () => {
    for (const query of [
      { search: "a" },
      { category: "free" },
      { input_modality: "text" },
      { free: true },
      { tools: true },
      { min_context: 0 },
      { max_prompt_price: 1 }
    ]) {
      assert.isTrue(isFiltered(query), JSON.stringify(query))
    }
    for (const query of [
      {},
      { search: "", category: "", input_modality: "," },
      { free: false, tools: false },
      { sort: "newest", limit: 1, offset: 1, include_collections: true } as const
    ]) {
      assert.isFalse(isFiltered(query), JSON.stringify(query))
    }
  })

  it.effect("equals an independent recount, whatever the list and the query", () =>
    forSeeds(200, (random) =>
      Effect.sync(() => {
        const list = randomList(random)
        for (let round = 0; round < 10; round++) {
          const query = randomQuery(random)
          const expected = recount(list, query)
          const { page, total } = selectModels(offered(listOf(...list)), query)
          const found = { total, page: page.map(({ id }) => id) }
          assert.deepStrictEqual(found, expected, JSON.stringify(query))
        }
      })
    )
  )
})

interface Listed {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly created: number
  readonly context_length: number
  readonly architecture: {
    readonly input_modalities: ReadonlyArray<string>
    readonly output_modalities: ReadonlyArray<string>
  }
  /** the prompt's, in millionths of a US dollar per million tokens: whole numbers, so that the recount needs no decimals */
  readonly micros: number
  readonly completionMicros: number
  readonly supported_parameters: ReadonlyArray<string>
}

const pick = <A>(random: SeededRandom, values: ReadonlyArray<A>): A => {
  const value = values[random.below(values.length)]
  if (value === undefined) throw new Error("nothing to pick from")
  return value
}

const some = (random: SeededRandom, values: ReadonlyArray<string>): ReadonlyArray<string> =>
  values.filter(() => random.chance(0.4))

const modalities = ["image", "audio", "file"]
const words = ["Alpha", "beta", "GAMMA", "delta", "ß", "é"]

const randomList = (random: SeededRandom): ReadonlyArray<Listed> =>
  Array.from({ length: 1 + random.below(30) }, (_, index) => ({
    ...upstreamModel("x"),
    id: `${pick(random, ["acme", "bor", "c"])}/m${index}`,
    name: `${pick(random, words)} ${pick(random, words)}`,
    description: some(random, words).join(" "),
    created: random.below(5),
    context_length: pick(random, [0, 8_192, 99_999, 100_000, 1_000_000]),
    architecture: {
      input_modalities: ["text", ...some(random, modalities)],
      output_modalities: ["text", ...some(random, ["audio", "image"])]
    },
    ...pricesOf(pick(random, [-1, 0, 0, 1, 25, 100, 3_000_000]), pick(random, [0, 0, 4, 5])),
    supported_parameters: some(random, ["tools", "reasoning", "stop"])
  }))

const perToken = (micros: number): string =>
  micros < 0
    ? "-1"
    : `0.${String(micros)
        .padStart(12, "0")
        .replace(/^(\d{12}).*/, "$1")}`

const pricesOf = (micros: number, completionMicros: number) => ({
  micros,
  completionMicros,
  pricing: { prompt: perToken(micros), completion: perToken(completionMicros) }
})

const randomQuery = (random: SeededRandom): ModelQuery => ({
  ...(random.chance(0.3) ? { search: pick(random, ["alpha", "A", "bor/", "É", "m1", "zzz"]) } : {}),
  ...(random.chance(0.3)
    ? { category: some(random, ["vision", "tools", "long-context", "free", "reasoning", "audio"]).join(",") }
    : {}),
  ...(random.chance(0.2) ? { input_modality: some(random, ["text", ...modalities]).join(", ") } : {}),
  ...(random.chance(0.2) ? { free: random.chance(0.7) } : {}),
  ...(random.chance(0.2) ? { tools: random.chance(0.7) } : {}),
  ...(random.chance(0.2) ? { min_context: pick(random, [0, 8_193, 100_000]) } : {}),
  // 1.02 and 25.5 are exactly what 1 and 25 cost with the markup
  ...(random.chance(0.3) ? { max_prompt_price: pick(random, [0, 1.02e-6, 1.01e-6, 25.5e-6, 1e-4, 4]) } : {}),
  ...(random.chance(0.7) ? { sort: pick(random, modelSorts) } : {}),
  ...(random.chance(0.3) ? { limit: 1 + random.below(5) } : {}),
  ...(random.chance(0.3) ? { offset: random.below(5) } : {})
})

/** The rules of the contract over the upstream's own entries, with none of the code under test. */
const recount = (list: ReadonlyArray<Listed>, query: ModelQuery) => {
  const isFree = (model: Listed) => model.micros === 0 && model.completionMicros === 0
  const tagsOf = (model: Listed) =>
    new Set([
      ...(model.architecture.input_modalities.includes("image") ? ["vision"] : []),
      ...(model.supported_parameters.includes("tools") ? ["tools"] : []),
      ...(model.context_length >= 100_000 ? ["long-context"] : []),
      ...(isFree(model) ? ["free"] : []),
      ...(model.supported_parameters.includes("reasoning") ? ["reasoning"] : []),
      ...(JSON.stringify(model.architecture).includes(`"audio"`) ? ["audio"] : [])
    ])
  const split = (text = "") => (text.trim() === "" ? [] : text.split(",").map((word) => word.trim()))
  let found = [...list]
  const { search } = query
  if (search !== undefined) {
    found = found.filter((model) =>
      `${model.id}\n${model.name}\n${model.description}`.toLowerCase().includes(search.toLowerCase())
    )
  }
  for (const tag of split(query.category)) found = found.filter((model) => tagsOf(model).has(tag))
  for (const modality of split(query.input_modality)) {
    found = found.filter((model) => model.architecture.input_modalities.includes(modality))
  }
  if (query.free === true) found = found.filter(isFree)
  if (query.tools === true) found = found.filter((model) => model.supported_parameters.includes("tools"))
  const { max_prompt_price: maxPrice, min_context: minContext } = query
  if (minContext !== undefined) found = found.filter((model) => model.context_length >= minContext)
  if (maxPrice !== undefined) {
    // in hundred-millionths: 102 * micros against the price asked for
    const max = Math.round(maxPrice * 1e8)
    found = found.filter((model) => model.micros >= 0 && model.micros * 102 <= max)
  }
  return page(sorted(found, query.sort ?? "name"), query)
}

const page = (found: ReadonlyArray<Listed>, { limit, offset = 0 }: ModelQuery) => ({
  total: found.length,
  page: found.slice(offset, limit === undefined ? undefined : offset + limit).map(({ id }) => id)
})

const sorted = (found: ReadonlyArray<Listed>, sort: string): ReadonlyArray<Listed> => {
  /** lists of numbers and texts that are compared one after the other */
  const keysOf = (model: Listed): ReadonlyArray<number | string> => {
    const names = [model.name.toLowerCase(), model.id]
    const prices = [model.micros, model.completionMicros]
    const isRouted = Number(model.micros < 0)
    if (sort === "newest") return [-model.created, ...names]
    if (sort === "context-asc") return [model.context_length, ...names]
    if (sort === "context-desc") return [-model.context_length, ...names]
    if (sort === "price-asc") return [isRouted, ...(isRouted === 1 ? [] : prices), ...names]
    if (sort === "price-desc")
      return [isRouted, ...(isRouted === 1 ? [] : prices.map((price) => -price)), ...names]
    return names
  }
  return [...found].sort((a, b) => {
    const [left, right] = [keysOf(a), keysOf(b)]
    const at = left.findIndex((key, index) => key !== right[index])
    return at < 0 ? 0 : (left[at] ?? 0) < (right[at] ?? 0) ? -1 : 1
  })
}
