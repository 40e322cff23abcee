import type { StatsFilters } from "#schemas/analytics/Stats.ts"
import { pageIdSql } from "#streams/analytics/PageIds.ts"
import { displayHostname, displayPath } from "#streams/analytics/DisplayForm.ts"
import { storedReferrer } from "#streams/analytics/Referrer.ts"
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

/** The filters of visits; `page` also filters their page views. Source: contract/analytics#filters. */
export type Filters = StatsFilters

/** A piece of SQL and the values of its `{name:String}`. */
export interface Statement {
  readonly sql: string
  readonly parameters: Readonly<Record<string, unknown>>
}

/** Selects what is unknown. */
export const none = "(none)"

/** The columns of `visits` by the name under which they are asked for, as a filter and as a dimension. */
export const attributeColumnOf = {
  hostname: "hostname",
  referrer: "referrer",
  source: "source",
  channel: "channel",
  campaign: "utm_campaign",
  medium: "utm_medium",
  term: "utm_term",
  content: "utm_content",
  country: "country",
  browser: "browser",
  os: "os",
  device: "device"
} as const

export type Attribute = keyof typeof attributeColumnOf

/** In which list of a visit a filter looks, and where. */
const listFilters = {
  page: { list: "view.page", at: "any" },
  entry: { list: "view.page", at: "first" },
  exit: { list: "view.page", at: "last" },
  event: { list: "goal.name", at: "any" }
} as const

type ListFilter = keyof typeof listFilters

const parameterOf = (name: string): string => `filter_${name}`

/** A pattern of LIKE in which only `*` stands for anything. */
const likePattern = (glob: string): string => glob.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%")

const isGlob = (filter: string): boolean => filter.includes("*")

/** A filter's text, and the number of the page that it names. */
const textOf = (name: ListFilter): string => `{${parameterOf(name)}:String}`
const pageOf = (name: ListFilter): string => pageIdSql(textOf(name))

/** Compares an SQL text with what the filter says, `*` included; not for `(none)`. */
const matches = (text: string, name: ListFilter, filter: string): string =>
  `${text} ${isGlob(filter) ? "LIKE" : "="} ${textOf(name)}`

/** The same of the number of a page. */
const matchesPage = (id: string, name: ListFilter, filter: string): string =>
  isGlob(filter)
    ? `${id} IN (SELECT id FROM page_names WHERE site = {site:String} AND ${matches("path", name, filter)})`
    : `${id} = ${pageOf(name)}`

const isAttribute = (name: string): name is Attribute => name in attributeColumnOf

const isListFilter = (name: string): name is ListFilter => name in listFilters

/**
 * The stored form of what is asked for, where the same may be written in two ways. Source: contract/analytics#filters.
 */
const storedForm: Readonly<Partial<Record<string, (filter: string) => string>>> = {
  page: displayPath,
  entry: displayPath,
  exit: displayPath,
  hostname: displayHostname,
  source: displayHostname,
  referrer: storedReferrer,
  country: (code) => code.toUpperCase()
}

/** The filters as SQL conditions. */
export class FilterConditions {
  readonly parameters: Readonly<Record<string, string>>
  readonly #filters: Filters

  constructor(filters: Filters) {
    this.#filters = filters
    const parameters: Record<string, string> = {}
    for (const [name, filter] of Object.entries(filters)) {
      if (filter === none) continue
      const text = storedForm[name]?.(filter) ?? filter
      parameters[parameterOf(name)] = isListFilter(name) && isGlob(text) ? likePattern(text) : text
    }
    this.parameters = parameters
  }

  get isEmpty(): boolean {
    return Object.keys(this.#filters).length === 0
  }

  /** Whether only page views of some pages count. */
  get isOfPages(): boolean {
    return this.#filters.page !== undefined && this.#filters.page !== none
  }

  /** Whether visits of several rows have to be put together, which is dear. */
  get isOfWholeVisits(): boolean {
    return Object.keys(this.#filters).some(isListFilter)
  }

  /** The end of a statement: a list of visits is no help to the primary key, and would be made while planning too. */
  get settings(): string {
    return this.isOfWholeVisits ? " SETTINGS use_index_for_in_with_subqueries = 0" : ""
  }

  /** Whether a number, of `visits`, is of one of the pages that count. */
  isPage(id: string): string {
    return this.#ofPages((page) => matchesPage(id, "page", page))
  }

  /** How many of a list of numbers are of pages that count. */
  pagesAmong(ids: string): string {
    return `arrayCount(page -> ${this.isPage("page")}, ${ids})`
  }

  /** Whether a path, of `events`, is. */
  isPath(path: string): string {
    return this.#ofPages((page) => matches(path, "page", page))
  }

  #ofPages(condition: (page: string) => string): string {
    const { page } = this.#filters
    return page === undefined || page === none ? "1" : condition(page)
  }

  /** On the rows of `visits` that begin within `wide`, which has to hold all rows of the visits that are asked about. */
  onVisits(wide: string): string {
    const attributes = Object.entries(this.#filters)
      .filter(([name]) => isAttribute(name))
      .map(([name, filter]) => this.#attribute(name as Attribute, filter))
    const lists = Object.entries(this.#filters).filter(([name]) => isListFilter(name))
    const whole = lists.length === 0 ? [] : [this.#whole(wide, lists as ReadonlyArray<[ListFilter, string]>)]
    return [...attributes, ...whole].map((condition) => `AND ${condition}`).join(" ")
  }

  #attribute(name: Attribute, filter: string): string {
    const column = attributeColumnOf[name]
    if (filter === none) return `${column} = ''`
    const value = `{${parameterOf(name)}:String}`
    return name === "source" ? `lowerUTF8(${column}) = lowerUTF8(${value})` : `${column} = ${value}`
  }

  /** A visit is one row, or its rows are looked at together. */
  #whole(wide: string, filters: ReadonlyArray<[ListFilter, string]>): string {
    const each = (holds: (name: ListFilter, filter: string) => string): string =>
      filters.map(([name, filter]) => holds(name, filter)).join(" AND ")
    return `(visit = 0 AND ${each(holdsInRow)} OR (visitor, visit) IN (
      SELECT visitor, visit FROM long_visits FINAL WHERE ${wide} GROUP BY visitor, visit
      HAVING ${each(holdsInRows)}))`
  }
}

/** Whether an item of a list is what the filter says. */
const isItem = (item: string, name: ListFilter, filter: string): string =>
  (name === "event" ? matches : matchesPage)(item, name, filter)

/** Whether a filter holds on a visit that is one row. */
const holdsInRow = (name: ListFilter, filter: string): string => {
  const { at, list } = listFilters[name]
  if (filter === none) return `empty(${list})`
  if (at === "any") return hasItem(name, filter)
  return `notEmpty(${list}) AND ${isItem(`${list}[${at === "first" ? 1 : -1}]`, name, filter)}`
}

/** Whether it holds on a visit of several rows: of its lists, of all rows in their order. */
const holdsInRows = (name: ListFilter, filter: string): string => {
  const { at, list } = listFilters[name]
  if (filter === none) return `min(empty(${list}))`
  if (at === "any") return `max(${hasItem(name, filter)})`
  const item =
    at === "first"
      ? `argMinIf(${list}[1], part, notEmpty(${list}))`
      : `argMaxIf(${list}[-1], part, notEmpty(${list}))`
  return `max(notEmpty(${list})) AND ${isItem(item, name, filter)}`
}

const hasItem = (name: ListFilter, filter: string): string => {
  const { list } = listFilters[name]
  if (isGlob(filter)) return `arrayExists(one -> ${isItem("one", name, filter)}, ${list})`
  return `has(${list}, ${name === "event" ? textOf(name) : pageOf(name)})`
}
