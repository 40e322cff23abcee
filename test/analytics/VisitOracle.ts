import { Effect } from "effect"
import { pageIdSql } from "#streams/analytics/PageIds.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"
import { attributeColumns } from "#streams/analytics/VisitEvent.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { storedEvent } from "./Events.ts"

/** A row of `visits` in all of its columns but the version, the visitor as text. */
export interface DescribedVisit extends Readonly<Record<string, unknown>> {
  readonly day: string
  readonly visitor: string
  readonly start: number
  readonly part: number
  readonly pageviews: number
  readonly engaged_ms: number
}

const described = visitColumns
  .map(({ name }) => name)
  .filter((name) => !["site", "visitor", "ver", "deleted"].includes(name))
  .map((name) => `\`${name}\``)
  .join(", ")

/** Parameters of the statements: of many visitors one of several slices at a time. */
export interface OracleParameters {
  readonly site: string
  readonly slice: number
  readonly slices: number
}

const where = "site = {site:String} AND visitor % {slices:UInt8} = {slice:UInt8}"

/** The visits of a site as they are stored. */
export const storedStatement = `
SELECT ${described}, toString(visits.visitor) AS visitor
FROM (SELECT * FROM visits FINAL WHERE ${where}) AS visits ORDER BY day, visits.visitor, start, part`

/** A row ends after so many page views and events, and with every hour of the visit. */
const rowHits = 1000
const rowSeconds = 3600

const idsOf = (paths: string): string => `arrayMap(path -> ${pageIdSql("path")}, ${paths})`

const firsts = ["hostname", ...attributeColumns]

/**
 * The same from `events` alone, by window functions: a visitor inactive for 30 minutes opens a visit. The time that the
 * pings of a page view credit in sequence, each clamped to the time elapsed less what is credited, is in closed form
 * S(n) + min(0, min over k of elapsed(k) - S(k)), where S(k) is the sum of the first k pings.
 */
export const definitionStatement = `
WITH
  identity AS (
    SELECT *, ts, row_number() OVER (PARTITION BY day, visitor ORDER BY ts, log_id, seq) AS place
    FROM events WHERE ${where}
  ),
  pings AS (
    SELECT e.day AS day, e.visitor AS visitor, e.place AS place, any(e.ts) AS ts,
      any(e.engaged_ms) AS sent, max(v.place) AS view_place, argMax(v.ts, v.place) AS view_ts
    FROM identity AS e
    INNER JOIN (SELECT * FROM identity WHERE kind = 'pageview' AND pv != '') AS v
      ON v.day = e.day AND v.visitor = e.visitor AND v.pv = e.pv
    WHERE e.kind = 'engage' AND v.place < e.place
    GROUP BY day, visitor, place
    HAVING dateDiff('millisecond', view_ts, ts) <= 86400000
  ),
  sums AS (
    SELECT day, visitor, view_place, dateDiff('millisecond', view_ts, ts) AS elapsed,
      sum(toInt64(sent)) OVER (PARTITION BY day, visitor, view_place ORDER BY place ROWS UNBOUNDED PRECEDING) AS so_far
    FROM pings
  ),
  credits AS (
    SELECT day, visitor, view_place, max(so_far) + least(0, min(elapsed - so_far)) AS credit
    FROM sums GROUP BY day, visitor, view_place
  ),
  activity AS (
    SELECT day, visitor, place, ts, true AS is_hit FROM identity WHERE kind != 'engage'
    UNION ALL
    SELECT day, visitor, place, ts, false AS is_hit FROM pings
  ),
  gaps AS (
    SELECT *, dateDiff('millisecond', lagInFrame(ts, 1, ts) OVER w, ts) > 1800000 AS is_gap FROM activity
    WINDOW w AS (PARTITION BY day, visitor ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
  ),
  numbered AS (
    SELECT *, sum(is_gap) OVER (PARTITION BY day, visitor ORDER BY place ROWS UNBOUNDED PRECEDING) AS nth FROM gaps
  ),
  hits AS (
    SELECT n.nth AS nth, i.day AS day, i.visitor AS visitor, i.place AS place, i.kind AS kind, i.path AS path,
      i.name AS name, toUInt32(intDiv(toUnixTimestamp64Milli(i.ts), 1000)) AS second, c.credit AS credit,
      ${firsts.map((name) => `first_value(i.${name}) OVER v AS ${name}`).join(", ")},
      first_value(toUInt32(intDiv(toUnixTimestamp64Milli(i.ts), 1000))) OVER v AS opened, row_number() OVER v AS nth_hit,
      row_number() OVER (PARTITION BY i.day, i.visitor, i.kind, i.path ORDER BY i.place) = 1 AS is_new
    FROM numbered AS n
    INNER JOIN identity AS i ON i.day = n.day AND i.visitor = n.visitor AND i.place = n.place
    LEFT JOIN credits AS c ON c.day = n.day AND c.visitor = n.visitor AND c.view_place = toUInt64(n.place)
    WHERE n.is_hit
    WINDOW v AS (PARTITION BY i.day, i.visitor, n.nth ORDER BY i.place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
  ),
  cuts AS (
    SELECT day, visitor, nth,
      arrayMap(hit -> hit.2, arraySort(groupArray((place, toUInt64(intDiv(second - opened, ${rowSeconds})))))) AS hours,
      arrayFold(
        (row, hour) -> if(hour != row.1 OR row.2 = ${rowHits},
          (hour, toUInt64(1), row.3 + 1, arrayPushBack(row.4, row.3 + 1)),
          (hour, row.2 + 1, row.3 + 1, row.4)),
        hours, (toUInt64(0), toUInt64(0), toUInt64(0), emptyArrayUInt64())
      ).4 AS firsts
    FROM hits GROUP BY day, visitor, nth
  ),
  placed AS (
    SELECT h.*, arrayCount(first -> first <= h.nth_hit, c.firsts) AS nth_row
    FROM hits AS h INNER JOIN cuts AS c ON c.day = h.day AND c.visitor = h.visitor AND c.nth = h.nth
  ),
  found AS (
    SELECT day, placed.visitor AS id, nth, nth_row, min(second) AS start, max(second) AS last,
      countIf(kind = 'pageview') AS pageviews, countIf(kind = 'event') AS events, sum(credit) AS credited,
      ${firsts.map((name) => `any(${name}) AS ${name}`).join(", ")},
      arraySort(groupArrayIf((place, path, second, toUInt8(is_new)), kind = 'pageview')) AS page_hits,
      arraySort(groupArrayIf((place, name, second, path), kind = 'event')) AS goal_hits
    FROM placed GROUP BY day, id, nth, nth_row
  ),
  found_rows AS (
    SELECT *, toUInt32(nth_row) AS part, last - start AS length_s,
      lagInFrame(last, 1, 0) OVER (PARTITION BY day, id ORDER BY nth, nth_row
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS previous_last,
      if(count() OVER whole = 1, 0, min(start) OVER whole) AS visit,
      toUInt8(nth_row < max(nth_row) OVER whole) AS more,
      if(nth_row = 0, sum(credited) OVER whole, 0) AS engaged_ms,
      ${idsOf("page_hits.2")} AS \`view.page\`, arrayMap(at -> at - start, page_hits.3) AS \`view.second\`,
      page_hits.4 AS \`view.new\`,
      goal_hits.2 AS \`goal.name\`, arrayMap(at -> at - start, goal_hits.3) AS \`goal.second\`,
      ${idsOf("goal_hits.4")} AS \`goal.page\`
    FROM found
    WINDOW whole AS (PARTITION BY day, id, nth)
  )
SELECT ${described}, toString(id) AS visitor FROM found_rows ORDER BY day, id, start, part`

const run = (statement: string) => (site: string) =>
  Effect.flatMap(ClickHouse, (clickhouse) =>
    clickhouse.query<DescribedVisit>(statement, { site, slice: 0, slices: 1 })
  )

/** Rows of visits that have several which are not in both tables, each in the same version. */
const copiesStatement = `
SELECT start, toString(visitor) AS visitor, part FROM (
  SELECT start, visitor, part, ver FROM visits FINAL WHERE site = {site:String} AND visit != 0
  UNION ALL SELECT start, visitor, part, ver FROM long_visits FINAL WHERE site = {site:String}
) GROUP BY start, visitor, part, ver HAVING count() != 2`

/** Dies where `long_visits` is not what `visits` says. */
export const visitsInStore = (site = storedEvent().site) =>
  Effect.flatMap(ClickHouse, (clickhouse) =>
    clickhouse.query(copiesStatement, { site }).pipe(
      Effect.flatMap((wrong) =>
        wrong.length === 0 ? Effect.void : Effect.die(new Error(`copies differ: ${JSON.stringify(wrong)}`))
      ),
      Effect.andThen(run(storedStatement)(site))
    )
  )

/** Pages in a site's visits whose path the store does not know. */
export const unnamedPages = (site = storedEvent().site) =>
  Effect.flatMap(ClickHouse, (clickhouse) =>
    clickhouse.query(
      `SELECT DISTINCT toString(id) AS id FROM visits FINAL ARRAY JOIN arrayConcat(view.page, goal.page) AS id
      WHERE site = {site:String} AND id NOT IN (
        SELECT id FROM page_names WHERE site = {site:String} AND id = ${pageIdSql("path")})`,
      { site }
    )
  )

export const visitsByDefinition = (site = storedEvent().site) => run(definitionStatement)(site)
