import * as Decimal from "#schemas/llm/Decimal.ts"
import type { ModelQuery } from "#schemas/llm/Model.ts"
import type { CatalogueModel } from "./CatalogueModel.ts"

/** The models that a query means: how many match, and those on its page. Source: contract/llm#models-list. */
export const selectModels = (
  models: ReadonlyArray<CatalogueModel>,
  query: ModelQuery
): { readonly total: number; readonly page: ReadonlyArray<CatalogueModel> } => {
  const matches = filtersOf(query)
  const found = models.filter((model) => matches.every((matches) => matches(model)))
  found.sort(orders[query.sort ?? "name"])
  const from = query.offset ?? 0
  return { total: found.length, page: found.slice(from, from + (query.limit ?? found.length)) }
}

/** Whether the query selects models: collections are then left out. Source: contract/llm#models-list. */
export const isFiltered = (query: ModelQuery): boolean => filtersOf(query).length > 0

type Filter = (model: CatalogueModel) => boolean

const filtersOf = (query: ModelQuery): ReadonlyArray<Filter> => {
  const { max_prompt_price: maxPrice, min_context: minContext } = query
  const filters: Array<Filter> = []
  const search = (query.search ?? "").toLowerCase()
  if (search !== "") filters.push((model) => contains(model, search))
  for (const tag of wordsOf(query.category)) filters.push(({ categories }) => categories.includes(tag))
  for (const modality of wordsOf(query.input_modality)) {
    filters.push(({ inputModalities }) => inputModalities.includes(modality))
  }
  if (query.free === true) filters.push(({ isFree }) => isFree)
  if (query.tools === true) filters.push(({ hasTools }) => hasTools)
  if (minContext !== undefined) filters.push(({ contextLength }) => contextLength >= minContext)
  const max = maxPrice === undefined ? undefined : Decimal.fromNumber(maxPrice)
  if (max !== undefined) filters.push(({ prices }) => prices !== undefined && costsAtMost(prices.prompt, max))
  return filters
}

const contains = ({ description, id, name }: CatalogueModel, search: string): boolean =>
  [id, name, description].some((text) => text.toLowerCase().includes(search))

/** `Vision, tools` as `["vision", "tools"]`. */
const wordsOf = (list: string | undefined): ReadonlyArray<string> =>
  (list ?? "")
    .split(",")
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== "")

const million: Decimal.Decimal = { units: 1_000_000n, scale: 0 }

const costsAtMost = (perToken: Decimal.Decimal, perMillion: Decimal.Decimal): boolean =>
  Decimal.compare(Decimal.multiply(perToken, million), perMillion) <= 0

type Order = (a: CatalogueModel, b: CatalogueModel) => number

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** By code units of the name in small letters: the same in every locale. */
const byName: Order = (a, b) => byText(a.name.toLowerCase(), b.name.toLowerCase()) || byText(a.id, b.id)

const then =
  (...orders: ReadonlyArray<Order>): Order =>
  (a, b) => {
    for (const order of orders) {
      const difference = order(a, b)
      if (difference !== 0) return difference
    }
    return 0
  }

const byContext: Order = (a, b) => a.contextLength - b.contextLength

/** By the price of prompt tokens, then of the others. Models without a price of their own come last either way. */
const byPrice =
  (direction: 1 | -1): Order =>
  ({ prices: a }, { prices: b }) => {
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
    return direction * (Decimal.compare(a.prompt, b.prompt) || Decimal.compare(a.completion, b.completion))
  }

const orders: Readonly<Record<NonNullable<ModelQuery["sort"]>, Order>> = {
  name: byName,
  newest: then((a, b) => b.created - a.created, byName),
  "price-asc": then(byPrice(1), byName),
  "price-desc": then(byPrice(-1), byName),
  "context-asc": then(byContext, byName),
  "context-desc": then((a, b) => byContext(b, a), byName)
}
