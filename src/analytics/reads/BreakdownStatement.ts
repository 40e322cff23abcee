import { propOf } from "#schemas/analytics/Breakdown.ts"
import type { PeriodRange } from "#streams/analytics/Periods.ts"
import { partSeconds } from "#streams/analytics/Visits.ts"
import {
  type Attribute,
  attributeColumnOf,
  FilterConditions,
  type Filters,
  type Statement
} from "./Filters.ts"
import {
  beginWithin,
  beginWithinAny,
  daySeconds,
  identity,
  reachInto,
  type Span,
  spanOf,
  wholeDays
} from "../store/VisitRows.ts"

/** A row as the store answers it; '' is unknown. */
export interface BreakdownStoreRow {
  readonly value: string
  readonly visitors: number
  readonly pageviews: number
  readonly count: number
}

interface BreakdownAsked {
  readonly site: string
  readonly range: PeriodRange
  readonly filters: Filters
  readonly dimension: string
  readonly limit: number
}

/** The common parts of all kinds of breakdown. */
interface Parts {
  readonly span: Span
  readonly conditions: FilterConditions
  /** on rows of visits, from `AND` on; '' for none */
  readonly holds: string
}

/**
 * Ranked values of a dimension over a period. Visits count where they started, page views and events where they
 * happened, visitors wherever they were active.
 */
export const breakdownStatement = ({ dimension, filters, limit, range, site }: BreakdownAsked): Statement => {
  const conditions = new FilterConditions(filters)
  const span = spanOf(range)
  const parts = { span, conditions, holds: conditions.onVisits(beginWithin(wholeDays(span))) }
  const prop = propOf(dimension)
  const sql = prop === undefined ? (ofHits[dimension] ?? byVisit)(parts, dimension) : byProp(parts)
  return {
    sql: `${sql} ORDER BY visitors DESC, count DESC, value = '', value LIMIT ${limit}${conditions.settings}`,
    parameters: { ...conditions.parameters, site, ...(prop === undefined ? {} : { prop }) }
  }
}

/** An hour at each end, in which rows may reach over the period's bounds, and the span between. */
const splitAtEnds = ({ from, to }: Span): { readonly inner: Span; readonly ends: ReadonlyArray<Span> } => {
  const last = Math.max(from, to - partSeconds)
  return {
    inner: { from, to: last },
    ends: [
      { from: Math.max(0, from - partSeconds), to: from },
      { from: last, to }
    ]
  }
}

/** Whether a second of a row lies in the period. */
const isIn = ({ from, to }: Span, second: string): string => `${second} >= ${from} AND ${second} < ${to}`

/**
 * Page views by their path. The first view of a page by a visitor of a day is marked, so visitors can be added up; but
 * not with filters, and not on a day that had begun before the period, when identities are counted. Each kind of row is
 * added up by itself: most have no more than path and mark to be read.
 */
const byPage = ({ conditions, holds, span }: Parts): string => {
  const { ends, inner } = splitAtEnds(span)
  const within = `AND ${isIn(span, "start + second")}`
  const dayEnd = Math.ceil(span.from / daySeconds) * daySeconds
  const isCounted = conditions.isEmpty ? `mark = 2 OR start < ${dayEnd}` : "1"
  const ofRows = (where: string, within: string): string => `
    SELECT path, count() AS views, countIf(mark = 1 AND NOT (${isCounted})) AS first_views,
      uniqExactStateIf(day, visitor, ${isCounted}) AS identities
    FROM visits FINAL ARRAY JOIN pages AS path, page_new AS mark${within === "" ? "" : ", page_s AS second"}
    WHERE ${where} ${holds} AND ${conditions.isPage("path")} ${within} GROUP BY path`
  // An expensive expression is written once.
  const rows = conditions.isOfWholeVisits
    ? ofRows(beginWithin(reachInto(span)), within)
    : `${ofRows(beginWithin(inner), "")} UNION ALL ${ofRows(beginWithinAny(ends), within)}`
  return `
  SELECT path AS value, sum(first_views) + uniqExactMerge(identities) AS visitors, sum(views) AS pageviews,
    pageviews AS count
  FROM (${rows}) GROUP BY value`
}

/** Events by their name. */
const byEvent = ({ conditions, holds, span }: Parts): string => `
  SELECT name AS value, uniqExact(${identity}) AS visitors, 0 AS pageviews, count() AS count
  FROM visits FINAL ARRAY JOIN goals AS name, goal_s AS second, goal_pages AS path
  WHERE ${beginWithin(reachInto(span))} ${holds} AND ${isIn(span, "start + second")} AND ${conditions.isPage("path")}
  GROUP BY value`

const ofHits: Readonly<Record<string, (parts: Parts) => string>> = { page: byPage, event: byEvent }

/** A dimension whose value is in each row. */
interface InRow {
  readonly from: string
  readonly value: string
}

const wholeRow = [
  "day",
  "visitor",
  "start",
  "part",
  "visit",
  "pageviews",
  "pages",
  "page_s",
  "goals",
  "goal_s",
  "goal_pages"
]

/**
 * The source of a dimension's value: an attribute from every row; the first and last page from the row that is all of
 * its visit, else from all rows of the visit together.
 */
const sourcesOf = (dimension: string, wide: string): ReadonlyArray<(where: string) => InRow> => {
  if (dimension !== "entry" && dimension !== "exit") {
    const value = attributeColumnOf[dimension as Attribute]
    return [(where) => ({ from: `visits FINAL WHERE ${where}`, value })]
  }
  const [pick, page] = dimension === "entry" ? ["argMinIf", 1] : ["argMaxIf", -1]
  return [
    (where) => ({ from: `visits FINAL WHERE visit = 0 AND ${where}`, value: `pages[${page}]` }),
    (where) => ({
      from: `(SELECT ${wholeRow.join(", ")} FROM visits FINAL WHERE visit != 0 AND ${where}) AS one
      INNER JOIN (
        SELECT visitor AS its_visitor, visit AS its_visit, ${pick}(pages[${page}], part, notEmpty(pages)) AS whole_page
        FROM visits FINAL PREWHERE visit != 0 WHERE ${wide} GROUP BY visitor, visit
      ) AS whole ON visitor = its_visitor AND visit = its_visit WHERE 1`,
      value: "whole_page"
    })
  ]
}

/** Visits by something that they have as a whole. */
const byVisit = ({ conditions, holds, span }: Parts, dimension: string): string => {
  const { ends, inner } = splitAtEnds(span)
  const hits = (times: string, paths: string): string => {
    const counted = conditions.isOfPages
      ? `arrayFilter((second, path) -> ${conditions.isPage("path")}, ${times}, ${paths})`
      : times
    return `arrayCount(second -> ${isIn(span, "start + second")}, ${counted})`
  }
  const lookedAt = ({ from, value }: InRow): string => `
    SELECT ${value} AS value, ${identity} AS identity, ${hits("page_s", "pages")} AS p,
      ${conditions.isOfPages ? "p" : `p + ${hits("goal_s", "goal_pages")}`} AS active,
      part = 0 AND ${isIn(span, "start")} AS is_start
    FROM ${from} AND (active > 0 OR is_start)`
  const asTheyAre = ({ from, value }: InRow): string => `
    SELECT ${value} AS value, ${identity} AS identity, pageviews AS p, 1 AS active, part = 0 AS is_start FROM ${from}`
  const rows = sourcesOf(dimension, beginWithin(wholeDays(span))).flatMap((rowsOf) =>
    conditions.isOfPages
      ? [lookedAt(rowsOf(`${beginWithin(reachInto(span))} ${holds}`))]
      : [
          asTheyAre(rowsOf(`${beginWithin(inner)} ${holds}`)),
          lookedAt(rowsOf(`${beginWithinAny(ends)} ${holds}`))
        ]
  )
  return `
  SELECT toString(value) AS value, uniqExactIf(identity, active > 0) AS visitors, sum(p) AS pageviews,
    countIf(is_start) AS count
  FROM (${rows.join(" UNION ALL ")}) GROUP BY value`
}

/** Page views and events by what one of their properties says; of some visits only: those that lie in one of them. */
const byProp = ({ conditions, holds, span }: Parts): string => {
  const firstDay = Math.floor(span.from / daySeconds)
  const lastDay = Math.floor((span.to - 1) / daySeconds)
  const second = "toUInt32(toUInt16(day)) * 86400 + intDiv(at_ms, 1000)"
  const within = conditions.isEmpty
    ? ""
    : `INNER JOIN (
      SELECT day AS its_day, visitor AS its_visitor, groupArray((start, start + length_s)) AS spans
      FROM visits FINAL WHERE ${beginWithin(reachInto(span))} ${holds} GROUP BY day, visitor
    ) AS kept ON day = its_day AND visitor = its_visitor`
  const isKept = conditions.isEmpty ? "" : `AND arrayExists(one -> at >= one.1 AND at <= one.2, spans)`
  return `
  SELECT value, uniqExact(identity) AS visitors, countIf(kind = 'pageview') AS pageviews, count() AS count
  FROM (
    SELECT kind, ${identity} AS identity, ${second} AS at, props_values[indexOf(props_keys, {prop:String})] AS value
    FROM events ${within}
    WHERE site = {site:String} AND day >= toDate(${firstDay}) AND day <= toDate(${lastDay}) AND kind != 'engage'
      AND has(props_keys, {prop:String}) AND ${isIn(span, "at")} AND ${conditions.isPage("path")} ${isKept}
  ) GROUP BY value`
}
