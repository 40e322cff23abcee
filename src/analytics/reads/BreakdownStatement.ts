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
  const ranked = prop === undefined ? (ofHits[dimension] ?? byVisit)(parts, dimension) : byProp(parts)
  const sql = isOfPages(dimension) ? withPaths(ranked, limit) : ranked
  return {
    sql: `${sql} ORDER BY visitors DESC, count DESC, value = '', value LIMIT ${limit}${conditions.settings}`,
    parameters: { ...conditions.parameters, site, ...(prop === undefined ? {} : { prop }) }
  }
}

/** The dimensions whose values are numbers of pages. */
const isOfPages = (dimension: string): boolean => ["page", "entry", "exit"].includes(dimension)

/** Puts paths in the places of numbers, once there are few. A path decides among equals, so all of those get theirs. */
const withPaths = (ranked: string, limit: number): string => `
  SELECT path AS value, visitors, pageviews, count
  FROM (${ranked} ORDER BY visitors DESC, count DESC LIMIT ${limit} WITH TIES) AS ranked
  ANY LEFT JOIN (SELECT id, path FROM page_names WHERE site = {site:String}) AS names ON ranked.value = names.id`

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
 * Page views by their page. The first view of a page by a visitor of a day is marked, so visitors can be added up; but
 * not with filters, and not on a day that had begun before the period, when identities are counted. Each kind of row is
 * added up by itself: most have no more than page and mark to be read.
 */
const byPage = ({ conditions, holds, span }: Parts): string => {
  const { ends, inner } = splitAtEnds(span)
  const dayEnd = Math.ceil(span.from / daySeconds) * daySeconds
  const isCounted = conditions.isEmpty ? `mark = 2 OR start < ${dayEnd}` : "1"
  const ofRows = (where: string, isAtEnds: boolean): string => `
    SELECT page, count() AS views, countIf(mark = 1 AND NOT (${isCounted})) AS first_views,
      uniqExactStateIf(day, visitor, ${isCounted}) AS identities
    FROM visits FINAL ARRAY JOIN view.page AS page, view.new AS mark${isAtEnds ? ", view.second AS second" : ""}
    WHERE ${where} ${holds} AND ${conditions.isPage("page")} ${isAtEnds ? `AND ${isIn(span, "start + second")}` : ""}
    GROUP BY page`
  return `
  SELECT page AS value, sum(first_views) + uniqExactMerge(identities) AS visitors, sum(views) AS pageviews,
    pageviews AS count
  FROM (${ofRows(beginWithin(inner), false)} UNION ALL ${ofRows(beginWithinAny(ends), true)}) GROUP BY value`
}

/** Events by their name. */
const byEvent = ({ conditions, holds, span }: Parts): string => `
  SELECT name AS value, uniqExact(${identity}) AS visitors, 0 AS pageviews, count() AS count
  FROM visits FINAL ARRAY JOIN goal.name AS name, goal.second AS second, goal.page AS page
  WHERE ${beginWithin(reachInto(span))} ${holds} AND ${isIn(span, "start + second")} AND ${conditions.isPage("page")}
  GROUP BY value`

const ofHits: Readonly<Record<string, (parts: Parts) => string>> = { page: byPage, event: byEvent }

/** Rows, and the value of a dimension in them. */
interface Source {
  /** rows of some begin of it, `where` in terms of `visits` */
  readonly from: (where: string) => string
  readonly value: string
  /** few of them, all of which are looked at */
  readonly isSmall: boolean
}

/**
 * The source of a dimension's value: an attribute from every row; the first and last page from the row that is all of
 * its visit, else from all rows of the visit together.
 */
const sourcesOf = (dimension: string, wide: string): ReadonlyArray<Source> => {
  if (dimension !== "entry" && dimension !== "exit") {
    const value = attributeColumnOf[dimension as Attribute]
    return [{ from: (where) => `visits FINAL WHERE ${where}`, value, isSmall: false }]
  }
  const [pick, place] = dimension === "entry" ? ["argMinIf", 1] : ["argMaxIf", -1]
  return [
    {
      from: (where) => `visits FINAL WHERE visit = 0 AND ${where}`,
      value: `view.page[${place}]`,
      isSmall: false
    },
    {
      from: (where) => `(SELECT * FROM long_visits FINAL WHERE ${where}) AS one
      INNER JOIN (
        SELECT visitor AS its_visitor, visit AS its_visit, ${pick}(view.page[${place}], part, notEmpty(view.page)) AS whole_page
        FROM long_visits FINAL WHERE ${wide} GROUP BY visitor, visit
      ) AS whole ON visitor = its_visitor AND visit = its_visit WHERE 1`,
      value: "whole_page",
      isSmall: true
    }
  ]
}

/** Visits by something that they have as a whole. */
const byVisit = ({ conditions, holds, span }: Parts, dimension: string): string => {
  const { ends, inner } = splitAtEnds(span)
  const hits = (times: string, pages: string): string => {
    const counted = conditions.isOfPages
      ? `arrayFilter((second, page) -> ${conditions.isPage("page")}, ${times}, ${pages})`
      : times
    return `arrayCount(second -> ${isIn(span, "start + second")}, ${counted})`
  }
  const lookedAt = ({ from, value }: Source, where: string): string => `
    SELECT ${value} AS value, ${identity} AS identity, ${hits("view.second", "view.page")} AS p,
      ${conditions.isOfPages ? "p" : `p + ${hits("goal.second", "goal.page")}`} AS active,
      part = 0 AND ${isIn(span, "start")} AS is_start
    FROM ${from(`${where} ${holds}`)} AND (active > 0 OR is_start)`
  const asTheyAre = ({ from, value }: Source, where: string): string => `
    SELECT ${value} AS value, ${identity} AS identity,
      ${conditions.isOfPages ? conditions.pagesAmong("view.page") : "pageviews"} AS p,
      ${conditions.isOfPages ? "p" : "1"} AS active, part = 0 AS is_start
    FROM ${from(`${where} ${holds}`)} ${conditions.isOfPages ? "AND (active > 0 OR is_start)" : ""}`
  const rows = sourcesOf(dimension, beginWithin(wholeDays(span))).flatMap((source) =>
    source.isSmall
      ? [lookedAt(source, beginWithin(reachInto(span)))]
      : [asTheyAre(source, beginWithin(inner)), lookedAt(source, beginWithinAny(ends))]
  )
  return `
  SELECT ${isOfPages(dimension) ? "value" : "toString(value) AS value"}, uniqExactIf(identity, active > 0) AS visitors, sum(p) AS pageviews,
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
      AND has(props_keys, {prop:String}) AND ${isIn(span, "at")} AND ${conditions.isPath("path")} ${isKept}
  ) GROUP BY value`
}
