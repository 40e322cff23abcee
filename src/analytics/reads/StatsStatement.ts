import type { PeriodRange } from "#streams/analytics/Periods.ts"
import { partSeconds } from "#streams/analytics/Visits.ts"
import { FilterConditions, type Filters, type Statement } from "./Filters.ts"
import {
  beginWithin,
  beginWithinAny,
  identity,
  slotSeconds,
  type Span,
  wholeDays,
  spanOf
} from "../store/VisitRows.ts"

/** One cell of time: a bucket of the series, or the previous period, which is one cell of its own. */
export interface StatsRow {
  /** 1: the current one, 2: the one before */
  readonly period: 1 | 2
  /** 1: the whole period in one; its visitors are not the sum of its cells' */
  readonly is_total: 0 | 1
  /** epoch seconds at which the cell begins */
  readonly cell: number
  readonly visitors: number
  /** of the visitors, those who were not there earlier in the period: these do add up */
  readonly first_seen: number
  readonly visits: number
  readonly pageviews: number
  readonly events: number
  readonly bounces: number
  readonly engaged_ms: number
}

/** The cells of a statement, in epoch seconds. */
interface Cells {
  /** the bounds of the cells, and the end; the gap between the previous and the current period is a cell as well */
  readonly bounds: ReadonlyArray<number>
  readonly current: Span
  readonly previous: Span
}

const seconds = (millis: number): number => Math.floor(millis / 1000)

const cellsOf = (range: PeriodRange): Cells => {
  const current = spanOf(range)
  // Of the time before 1970 nothing is stored, and a store that counts from 1970 has no word for it.
  const before = Math.max(0, seconds(range.previous.fromMillis))
  const previous = {
    from: before,
    to: Math.min(current.from, Math.max(before + 1, seconds(range.previous.toMillis)))
  }
  const starts = range.buckets.map(({ startMillis }) => seconds(startMillis))
  const bounds = [previous.from, previous.to, ...starts, current.to]
  return { bounds: [...new Set(bounds)].sort((a, b) => a - b), current, previous }
}

/** The hour (to a full slot) before each bound: rows of visits that begin there may go on behind it, no others may. */
const edgesOf = ({ bounds }: Cells): ReadonlyArray<Span> => {
  const edges: Array<Span> = []
  for (const to of bounds) {
    const from = Math.max(0, Math.floor((to - partSeconds) / slotSeconds) * slotSeconds)
    const last = edges.at(-1)
    if (last !== undefined && last.to >= from) edges[edges.length - 1] = { from: last.from, to }
    else edges.push({ from, to })
  }
  return edges
}

/**
 * Figures of a site for a period, the one before and each bucket, from its visits.
 *
 * A visit counts where it started; its page views and events where they happened; its visitor wherever they were
 * active. Most rows lie within one cell and are added up as they are; of those near a bound the times are looked at one
 * by one. Without filters a visitor counts where their last activity before the row lies in an earlier cell, which is
 * additive; with filters, identities are counted.
 */
export const statsStatement = (site: string, range: PeriodRange, filters: Filters): Statement => {
  const cells = cellsOf(range)
  const conditions = new FilterConditions(filters)
  const sql = conditions.isEmpty ? added(cells) : counted(cells, conditions)
  return {
    sql: `WITH [${[0, ...cells.bounds].join(", ")}]::Array(UInt32) AS cells ${sql}${conditions.settings}`,
    parameters: { ...conditions.parameters, site }
  }
}

/** All of the time that is asked about. */
const wholeOf = ({ current, previous }: Cells): Span => ({ from: previous.from, to: current.to })

/** Each kind of row is added up by itself: no mixed rows have to be told apart later. */
const added = (cells: Cells): string => {
  const edges = edgesOf(cells)
  const near = `
  SELECT cell, sum(cell != start_cell OR previous_last < cell) AS here, sum(${isFirstSeen(cells)}) AS first_here,
    countIf(is_start) AS starts, sum(p) AS views, sum(e) AS fired, countIf(is_start AND is_bounce) AS bounced,
    sumIf(engaged, is_start) AS engaged_sum
  FROM (${nearBounds(new FilterConditions({}), beginWithinAny(edges))}) GROUP BY cell`
  const within = `
  SELECT ${markOf(cells, edges)} AS cell, sum(previous_last < cell) AS here,
    sum(previous_last < if(cell >= ${cells.current.from}, ${cells.current.from}, ${cells.previous.from})) AS first_here,
    countIf(part = 0) AS starts, sum(pageviews) AS views, sum(events) AS fired,
    countIf(${isBounce} AND part = 0) AS bounced, sum(engaged_ms) AS engaged_sum
  FROM visits FINAL WHERE ${beginWithin(wholeOf(cells))} GROUP BY cell HAVING cell NOT IN (${edgeMarks(cells, edges)})`
  return `
  SELECT ${periodOf(cells)} AS period, 0 AS is_total, cell, sum(here) AS visitors, sum(first_here) AS first_seen,
    sum(starts) AS visits, sum(views) AS pageviews, sum(fired) AS events, sum(bounced) AS bounces,
    sum(engaged_sum) AS engaged_ms
  FROM (${edges.length > 1 ? `${near} UNION ALL ${within}` : near}) GROUP BY cell HAVING period > 0`
}

/** Identities are counted, for every cell and for the whole. */
const counted = (cells: Cells, conditions: FilterConditions): string => {
  const whole = wholeOf(cells)
  const holds = conditions.onVisits(beginWithin(wholeDays(whole)))
  const edges = edgesOf(cells)
  const rows = `SELECT identity, cell, ${periodOf(cells)} AS period, p, e, is_start, is_bounce, engaged`
  const parts = [`${rows} FROM (${nearBounds(conditions, `${beginWithinAny(edges)} ${holds}`)})`]
  if (edges.length > 1) parts.push(withinCells(cells, edges, conditions, `${beginWithin(whole)} ${holds}`))
  return `
  SELECT period, grouping(cell) AS is_total, cell,
    uniqExactIf(identity, ${conditions.isOfPages ? "p > 0" : "p + e > 0"}) AS visitors, 0 AS first_seen,
    countIf(is_start) AS visits, sum(p) AS pageviews, sum(e) AS events,
    countIf(is_start AND is_bounce) AS bounces, sumIf(engaged, is_start) AS engaged_ms
  FROM (${parts.join(" UNION ALL ")}) WHERE period > 0 GROUP BY GROUPING SETS ((period, cell), (period))`
}

const periodOf = ({ current, previous }: Cells): string =>
  `multiIf(cell >= ${current.from} AND cell < ${current.to}, 1, cell = ${previous.from}, 2, 0)`

/**
 * Whether a visitor is in this cell of a row for the first time in the period: in the row's first cell there, and not
 * before the row.
 */
const isFirstSeen = ({ current, previous }: Cells): string => {
  const lower = `if(cell >= ${current.from}, ${current.from}, ${previous.from})`
  return `if(start < ${lower}, cell = arrayMin(arrayFilter(one -> one >= ${lower}, row_cells)), cell = start_cell AND previous_last < ${lower})`
}

const isBounce = "pageviews = 1 AND events = 0 AND more = 0"

/** The marks at which cells and the hours before their bounds begin. */
const marksOf = (cells: Cells, edges: ReadonlyArray<Span>): ReadonlyArray<number> =>
  [...new Set([0, ...cells.bounds, ...edges.map(({ from }) => from)])].sort((a, b) => a - b)

/** The cell of a row, or the hour before a bound that it begins in. */
const markOf = (cells: Cells, edges: ReadonlyArray<Span>): string =>
  `roundDown(start, [${marksOf(cells, edges).join(", ")}]::Array(UInt32))`

const edgeMarks = (cells: Cells, edges: ReadonlyArray<Span>): string =>
  marksOf(cells, edges)
    .filter((mark) => edges.some(({ from, to }) => mark >= from && mark < to))
    .join(", ")

/** Rows that cannot reach the next bound. */
const withinCells = (
  cells: Cells,
  edges: ReadonlyArray<Span>,
  conditions: FilterConditions,
  where: string
): string => {
  const hits = conditions.isOfPages
    ? `${conditions.pagesAmong("view.page")} AS p, ${conditions.pagesAmong("goal.page")} AS e`
    : "pageviews AS p, events AS e"
  return `
  SELECT ${identity} AS identity, ${markOf(cells, edges)} AS cell, ${periodOf(cells)} AS period, ${hits},
    part = 0 AS is_start, ${isBounce} AS is_bounce, engaged_ms AS engaged
  FROM visits FINAL WHERE ${where} AND cell NOT IN (${edgeMarks(cells, edges)})`
}

/** Rows whose times are looked at one by one: those near a bound, or all where only some pages count. */
const nearBounds = (conditions: FilterConditions, where: string): string => {
  const cellOf = (time: string): string => `roundDown(toUInt32(${time}), cells)`
  const hits = (times: string, pages: string): string => {
    const counted = conditions.isOfPages
      ? `arrayFilter((second, page) -> ${conditions.isPage("page")}, ${times}, ${pages})`
      : times
    return `arrayMap(second -> ${cellOf("start + second")}, ${counted})`
  }
  return `
  SELECT identity, start, start_cell, row_cells, previous_last, arrayJoin(row_cells) AS cell,
    countEqual(page_cells, cell) AS p, countEqual(event_cells, cell) AS e, part = 0 AND cell = start_cell AS is_start,
    is_bounce, engaged
  FROM (
    SELECT ${identity} AS identity, start, part, ${isBounce} AS is_bounce, engaged_ms AS engaged, previous_last,
      ${cellOf("start")} AS start_cell, ${hits("view.second", "view.page")} AS page_cells,
      ${hits("goal.second", "goal.page")} AS event_cells,
      arrayDistinct(arrayPushFront(arrayConcat(page_cells, event_cells), start_cell)) AS row_cells
    FROM visits FINAL WHERE ${where}
  )`
}
