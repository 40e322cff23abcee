import { propOf } from "#schemas/analytics/Breakdown.ts"

/** Names by which a visit is known elsewhere, and the filter that is meant. */
const filterMeant: ReadonlyMap<string, string> = new Map([
  ["goal", "event"],
  ["utm_source", "source"],
  ["utm_medium", "medium"],
  ["utm_campaign", "campaign"],
  ["utm_term", "term"],
  ["utm_content", "content"]
])

/**
 * The fault of the first parameter that is known and filters nothing; undefined for none. Parameters that are not known
 * are ignored. Source: contract/http#query-parameters, contract/analytics#filters.
 */
export const inapplicableFilter = (url: string): string | undefined => {
  const search = url.indexOf("?")
  if (search < 0) return undefined
  for (const name of new URLSearchParams(url.slice(search)).keys()) {
    const meant = filterMeant.get(name)
    if (meant !== undefined) return `${name}: is no filter; ${meant} is`
    if (propOf(name) !== undefined) return `${name}: is a dimension, and no filter`.slice(0, faultLengthMax)
  }
  return undefined
}

/** The name of a property is the caller's and may be long. */
const faultLengthMax = 300
