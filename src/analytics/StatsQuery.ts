import type { PeriodRange } from "#streams/analytics/Periods.ts"

/** Which visits or page views count. Source: spec 2 A, Filters; decisions, Analytics. */
export interface Filters {
  readonly page?: string
  readonly source?: string
  readonly country?: string
  readonly browser?: string
  readonly os?: string
  readonly device?: string
  readonly campaign?: string
  readonly event?: string
}

/** Selects what is unknown. */
const none = "(none)"

/**
 * One cell of time: a bucket of the series, or the previous period, which is one cell of its own. `isTotal` rows sum up
 * a period; of visitors that is not the sum of its cells.
 */
export interface StatsRow {
  /** 0: of the previous period */
  readonly is_current: 0 | 1
  readonly is_total: 0 | 1
  /** epoch seconds at which the cell begins */
  readonly cell: number
  readonly visitors: number
  readonly visits: number
  readonly pageviews: number
  readonly events: number
  readonly bounces: number
  readonly engaged_ms: number
}

export interface Statement {
  readonly sql: string
  readonly parameters: Readonly<Record<string, unknown>>
}

const seconds = (millis: number): number => Math.floor(millis / 1000)
const daySeconds = 86_400

/** The lower bounds of the cells, in epoch seconds. */
interface Cells {
  readonly bounds: ReadonlyArray<number>
  readonly current: number
  /** exclusive; the second in which `to` lies still counts, so that a reader sees what was accepted before it asked */
  readonly end: number
  readonly previous: number
  readonly previousEnd: number
}

const cellsOf = (range: PeriodRange): Cells => {
  const current = seconds(range.fromMillis)
  const end = seconds(range.toMillis) + 1
  const previous = seconds(range.previous.fromMillis)
  const previousEnd = Math.max(previous + 1, seconds(range.previous.toMillis))
  const bounds = [
    0,
    previous,
    previousEnd,
    ...range.buckets.map(({ startMillis }) => seconds(startMillis)),
    end
  ]
  return { bounds: [...new Set(bounds)].sort((a, b) => a - b), current, end, previous, previousEnd }
}

const columns = {
  source: "source",
  country: "country",
  browser: "browser",
  os: "os",
  device: "device",
  campaign: "utm_campaign"
} as const

/** A pattern of LIKE in which only `*` stands for anything. */
const likePattern = (glob: string): string => glob.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%")

/** `name` is the parameter's; `value` is of type String. */
const matches = (value: string, name: string, filter: string): string =>
  filter.includes("*") ? `${value} LIKE {${name}:String}` : `${value} = {${name}:String}`

const conditionsOf = (filters: Filters): Statement => {
  const parameters: Record<string, string> = {}
  const conditions: Array<string> = []
  for (const [name, column] of Object.entries(columns) as ReadonlyArray<[keyof typeof columns, string]>) {
    const filter = filters[name]
    if (filter === undefined) continue
    parameters[name] = filter === none ? "" : name === "country" ? filter.toUpperCase() : filter
    conditions.push(`AND ${column} = {${name}:String}`)
  }
  for (const [name, list] of [
    ["page", "pages"],
    ["event", "goals"]
  ] as const) {
    const filter = filters[name]
    if (filter === none) conditions.push(`AND empty(${list})`)
    else if (filter !== undefined) {
      parameters[name] = filter.includes("*") ? likePattern(filter) : filter
      conditions.push(`AND arrayExists(one -> ${matches("one", name, filter)}, ${list})`)
    }
  }
  return { sql: conditions.join(" "), parameters }
}

/**
 * Figures of a site for a period, the one before and each bucket, from its visits.
 *
 * A visit counts where it started; its page views and events where they happened; its visitor wherever they were
 * active. Most visits lie within one cell and are added up as they are; of the others the times are looked at one by
 * one. Without filters a visitor counts where the visitor's last activity before the visit lies in an earlier cell,
 * which is additive; with filters, identities are counted.
 */
export const statsStatement = (site: string, range: PeriodRange, filters: Filters): Statement => {
  const cells = cellsOf(range)
  const { parameters, sql: conditions } = conditionsOf(filters)
  const isFiltered = Object.keys(filters).length > 0
  const scope = `site = {site:String} AND day >= toDate(${Math.floor(cells.previous / daySeconds)})
    AND day <= toDate(${Math.floor(cells.end / daySeconds)}) ${conditions}`
  const cellOf = (time: string): string => `roundDown(toUInt32(${time}), cells)`
  const isWithin = `${cellOf("start")} = ${cellOf("start + length_s")}`
  const periodOf = `multiIf(cell >= ${cells.current} AND cell < ${cells.end}, 1, cell = ${cells.previous}, 2, 0)`
  const lower = `if(period = 1, ${cells.current}, ${cells.previous})`
  const shared = `day, visitor, previous_last, part, start, pageviews = 1 AND events = 0 AS is_bounce, engaged_ms`

  const whole = `
    SELECT ${shared}, ${cellOf("start")} AS cell, ${periodOf} AS period, pageviews AS p, events AS e, true AS is_start,
      previous_last < cell AS is_new, previous_last < ${lower} AS is_new_in_period
    FROM visits FINAL WHERE ${scope} AND ${isWithin}`

  const ofPage = filters.page === undefined || filters.page === none ? undefined : filters.page
  const isPage = (path: string): string => (ofPage === undefined ? "1" : matches(path, "page", ofPage))
  const hits = (times: string, paths: string): string =>
    `arrayMap(second -> ${cellOf("start + second")},
      ${ofPage === undefined ? times : `arrayFilter((second, path) -> ${isPage("path")}, ${times}, ${paths})`})`
  const split = `
    SELECT ${shared}, arrayJoin(row_cells) AS cell, ${periodOf} AS period, countEqual(page_cells, cell) AS p,
      countEqual(event_cells, cell) AS e, cell = start_cell AS is_start,
      NOT is_start OR previous_last < cell AS is_new,
      cell = arrayMin(arrayFilter(one -> one >= ${lower}, row_cells))
        AND (start < ${lower} OR previous_last < ${lower}) AS is_new_in_period
    FROM (
      SELECT *, ${cellOf("start")} AS start_cell, ${hits("page_s", "pages")} AS page_cells,
        ${hits("goal_s", "goal_pages")} AS event_cells,
        arrayDistinct(arrayPushFront(arrayConcat(page_cells, event_cells), start_cell)) AS row_cells
      FROM visits FINAL WHERE ${scope} ${ofPage === undefined ? `AND NOT (${isWithin})` : ""}
    )`

  const isActive = ofPage === undefined ? "p + e > 0" : "p > 0"
  const identities = `uniqExactIf((day, visitor), ${isActive})`
  const visitors = isFiltered ? identities : `if(grouping(cell) = 1, sum(is_new_in_period), sum(is_new))`
  const sql = `
  WITH [${cells.bounds.join(", ")}]::Array(UInt32) AS cells
  SELECT period = 1 AS is_current, grouping(cell) AS is_total, cell, ${visitors} AS visitors,
    countIf(is_start AND part = 0) AS visits, sum(p) AS pageviews, sum(e) AS events,
    countIf(is_start AND part = 0 AND is_bounce) AS bounces, sumIf(engaged_ms, is_start) AS engaged_ms
  FROM (${ofPage === undefined ? `${whole} UNION ALL ${split}` : split})
  WHERE period > 0 GROUP BY GROUPING SETS ((period, cell), (period))`
  return { sql, parameters: { ...parameters, site } }
}
