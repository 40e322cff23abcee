import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

/** Results of a search that one fee covers. Source: OpenRouter, Web Search: $4 a thousand results, five unless asked otherwise. */
const resultsPerFee = 10

/** One extra may not ask for more fees than these: the hold of a call stays finite. */
const feesMax = 1_000

/** Fields of an extra that hold the wanted amount. */
const amounts = ["max_results", "max_uses", "max_total_results", "n"]

/**
 * The work that a request asks of the upstream beside reading and writing tokens, for which it charges by its own tariff: plugins,
 * tools that it runs itself, searches, pictures and sound in the answer. In units of one fee.
 * Source: contract/llm#charging.
 */
export const extrasOf = (json: JsonRecord): number =>
  listOf(json["plugins"]).reduce<number>((fees, plugin) => fees + feesOf(plugin), 0) +
  listOf(json["tools"])
    .filter((tool) => isJsonRecord(tool) && tool["type"] !== "function")
    .reduce<number>((fees, tool) => fees + feesOf(tool), 0) +
  (isJsonRecord(json["web_search_options"]) ? 1 : 0) +
  listOf(json["modalities"]).filter((one) => one !== "text").length

/** An upstream may take one that is not in a list as well. */
const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

const feesOf = (extra: unknown): number => {
  const fields = isJsonRecord(extra) ? [extra, extra["parameters"], extra["web"], extra["search"]] : []
  const wanted = fields
    .filter(isJsonRecord)
    .flatMap((one) => amounts.map((name) => one[name]))
    .filter((amount) => typeof amount === "number" && amount > 0)
  const most = Math.max(1, ...wanted.map(Number))
  return Math.min(feesMax, Math.max(1, Math.ceil(most / resultsPerFee)))
}
