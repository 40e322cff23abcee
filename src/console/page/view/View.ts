/** The present view. All of it is in the address bar, so that a link opens the same view; the key never is. */
export interface View {
  readonly room: RoomName
  readonly site: string | undefined
  /** of the agent, where one is open */
  readonly session: string | undefined
  readonly period: Period
  readonly filters: Filters
  /** of the usage of models */
  readonly window: UsageWindowName
  /** which tab of a panel is open, where it is not the first */
  readonly tabs: Readonly<Partial<Record<PanelName, string>>>
}

export const roomNames = ["sites", "models", "agents"] as const
export type RoomName = (typeof roomNames)[number]

/** Source: contract/llm#usage. */
export const usageWindows = ["hour", "day", "week", "month", "year", "ever"] as const
export type UsageWindowName = (typeof usageWindows)[number]

const defaultWindow: UsageWindowName = "day"

export type Period =
  | { readonly name: PresetName }
  /** dates, both inclusive, in the site's zone */
  | { readonly name: "custom"; readonly from: string; readonly to: string }

export type PresetName = (typeof presets)[number]

export const presets = ["today", "24h", "7d", "30d", "90d", "12mo"] as const

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
export type Filters = Readonly<Partial<Record<FilterName, string>>>

/** Panels of lists; their open tabs are kept in the address bar. */
export const panelNames = ["pages", "sources", "countries", "devices", "goals", "drops", "usage"] as const

export type PanelName = (typeof panelNames)[number]

/** The API's word for "unknown" in a filter. */
export const unknownValue = "(none)"

export const emptyView: View = {
  room: "sites",
  site: undefined,
  session: undefined,
  period: defaultPeriod,
  filters: {},
  window: defaultWindow,
  tabs: {}
}

export const modelsView: View = { ...emptyView, room: "models" }
export const agentsView: View = { ...emptyView, room: "agents" }

const oneOf = <A extends string>(names: ReadonlyArray<A>, name: string | null, otherwise: A): A =>
  names.find((known) => known === name) ?? otherwise

const isPreset = (name: string | null): name is PresetName => presets.some((preset) => preset === name)

const periodOf = (query: URLSearchParams): Period => {
  const name = query.get("period")
  const [from, to] = [query.get("from"), query.get("to")]
  if (name === "custom" && from !== null && to !== null) return { name, from, to }
  return isPreset(name) ? { name } : defaultPeriod
}

const picked = (query: URLSearchParams, names: ReadonlyArray<string>): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name)
      return value === null || value === "" ? [] : [[name, value]]
    })
  )

/** Reads a query string; unknown parts are left out. */
export const parseView = (search: string): View => {
  const query = new URLSearchParams(search)
  return {
    room: oneOf(roomNames, query.get("room"), "sites"),
    window: oneOf(usageWindows, query.get("window"), defaultWindow),
    site: query.get("site") ?? undefined,
    session: query.get("session") ?? undefined,
    period: periodOf(query),
    filters: picked(query, filterNames),
    tabs: picked(query, panelNames)
  }
}

/** The address of a view; defaults are left out. */
export const formatView = ({ filters, period, room, session, site, tabs, window }: View): string => {
  const query = new URLSearchParams()
  if (room !== "sites") query.set("room", room)
  if (window !== defaultWindow) query.set("window", window)
  if (site !== undefined) query.set("site", site)
  if (session !== undefined) query.set("session", session)
  if (period.name !== defaultPeriod.name) setPeriod(query, period)
  for (const [name, value] of Object.entries({ ...filters, ...tabs })) query.set(name, value)
  const text = query.toString()
  return text === "" ? "/" : `/?${text}`
}

const setPeriod = (query: URLSearchParams, period: Period): void => {
  query.set("period", period.name)
  if (period.name !== "custom") return
  query.set("from", period.from)
  query.set("to", period.to)
}

/** The query of the API's reads. */
export const readQuery = ({ filters, period }: View): string => {
  const query = new URLSearchParams()
  setPeriod(query, period)
  for (const [name, value] of Object.entries(filters)) query.set(name, value)
  return query.toString()
}

/** The view narrowed to the value; an unknown value is `null`. */
export const withFilter = (view: View, name: FilterName, value: string | null): View => ({
  ...view,
  filters: { ...view.filters, [name]: value ?? unknownValue }
})

export const withoutFilter = (view: View, name: FilterName): View => {
  const { [name]: _removed, ...filters } = view.filters
  return { ...view, filters }
}
