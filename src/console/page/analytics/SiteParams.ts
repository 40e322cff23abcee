import { homeView, type View, withParams } from "../view/View.ts"

/** The parameters of a site's page: the site, the period, filters, and the open tabs of panels. */

export type Period =
  | { readonly name: (typeof presets)[number]["name"] }
  /** dates, both inclusive, in the site's zone */
  | { readonly name: "custom"; readonly from: string; readonly to: string }

/** With a short form for narrow screens. */
export const presets = [
  { name: "today", long: "Today", short: "Today" },
  { name: "24h", long: "24 hours", short: "24 h" },
  { name: "7d", long: "7 days", short: "7 d" },
  { name: "30d", long: "30 days", short: "30 d" },
  { name: "90d", long: "90 days", short: "90 d" },
  { name: "12mo", long: "12 months", short: "12 mo" }
] as const

const defaultPeriod: Period = { name: "30d" }

/** The filters of a view, named as in the API. Source: contract/analytics#filters. */
export const filterNames = [
  "page",
  "entry",
  "exit",
  "source",
  "channel",
  "referrer",
  "campaign",
  "medium",
  "term",
  "content",
  "country",
  "browser",
  "os",
  "device",
  "event",
  "hostname"
] as const

export type FilterName = (typeof filterNames)[number]

/** The panels that have tabs. */
const panelNames = ["pages", "sources", "countries", "devices", "goals", "drops"] as const

export const siteParams = ["site", "period", "from", "to", ...filterNames, ...panelNames] as const

export const siteView = (site: string): View => withParams(homeView, { site })

export const periodOf = ({ params: { from, period, to } }: View): Period => {
  if (period === "custom" && from !== undefined && to !== undefined) return { name: period, from, to }
  const preset = presets.find(({ name }) => name === period)
  return preset === undefined ? defaultPeriod : { name: preset.name }
}

/** The period stands before filters and tabs in the address. */
export const withPeriod = ({ params, room }: View, { name, ...dates }: Period): View => {
  const { from: _from, period: _period, site = "", to: _to, ...others } = params
  const period = name === defaultPeriod.name ? {} : { period: name }
  return { room, params: { site, ...period, ...dates, ...others } }
}

/** The query of the API's reads. */
export const readQuery = (view: View): string => {
  const { name, ...dates } = periodOf(view)
  const filters = Object.entries(view.params).filter(([param]) =>
    filterNames.some((known) => known === param)
  )
  return new URLSearchParams({ period: name, ...dates, ...Object.fromEntries(filters) }).toString()
}

/** The API's word for "unknown" in a filter. */
export const unknownValue = "(none)"

/** The view narrowed to the value; an unknown value is `null`. */
export const withFilter = (view: View, name: FilterName, value: string | null): View =>
  withParams(view, { [name]: value ?? unknownValue })

export const withoutFilters = (view: View, names: ReadonlyArray<FilterName> = filterNames): View =>
  withParams(view, Object.fromEntries(names.map((name) => [name, undefined])))

export const isFiltered = ({ params }: View): boolean => filterNames.some((name) => name in params)
