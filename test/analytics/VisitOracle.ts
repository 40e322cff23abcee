import { Effect } from "effect"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"

/** A visit as both the store and the oracle describe it. */
export interface DescribedVisit {
  readonly site: string
  readonly day: string
  readonly visitor: string
  readonly start: number
  readonly pageviews: number
  readonly events: number
  readonly length_s: number
  readonly source: string
  readonly pages: ReadonlyArray<string>
  readonly page_s: ReadonlyArray<number>
  readonly goals: ReadonlyArray<string>
  readonly engaged_ms: number
  readonly single: number
  readonly previous_last: number
}

export const visitsInStore = Effect.flatMap(ClickHouse, (clickhouse) =>
  clickhouse.query<DescribedVisit>(
    `SELECT site, day, toString(visitor) AS visitor, start, pageviews, events, length_s, source, pages, page_s, goals,
      engaged_ms, single, previous_last
    FROM visits FINAL ORDER BY site, day, visits.visitor, start`
  )
)

/**
 * The same from `events` alone, by window functions: whoever was not active for 30 minutes opens a visit. What the pings
 * of a page view credit in sequence, each clamped to the time elapsed less what is credited, is in closed form
 * S(n) + min(0, min over k of elapsed(k) - S(k)), where S(k) is the sum of the first k pings.
 */
const definition = `
WITH
  identity AS (SELECT *, row_number() OVER (PARTITION BY site, day, visitor ORDER BY ts, log_id, seq) AS place FROM events),
  pings AS (
    SELECT e.site AS site, e.day AS day, e.visitor AS visitor, e.place AS place, any(e.ts) AS ts,
      any(e.engaged_ms) AS sent, max(v.place) AS view_place, argMax(v.ts, v.place) AS view_ts
    FROM identity AS e
    INNER JOIN (SELECT * FROM identity WHERE kind = 'pageview' AND pv != '') AS v
      ON v.site = e.site AND v.day = e.day AND v.visitor = e.visitor AND v.pv = e.pv
    WHERE e.kind = 'engage' AND v.place < e.place
    GROUP BY site, day, visitor, place
    HAVING dateDiff('millisecond', view_ts, ts) <= 86400000
  ),
  sums AS (
    SELECT site, day, visitor, view_place, dateDiff('millisecond', view_ts, ts) AS elapsed,
      sum(toInt64(sent)) OVER (PARTITION BY site, day, visitor, view_place ORDER BY place ROWS UNBOUNDED PRECEDING) AS so_far
    FROM pings
  ),
  credits AS (
    SELECT site, day, visitor, view_place, max(so_far) + least(0, min(elapsed - so_far)) AS credit
    FROM sums GROUP BY site, day, visitor, view_place
  ),
  activity AS (
    SELECT site, day, visitor, place, ts, true AS is_hit FROM identity WHERE kind != 'engage'
    UNION ALL
    SELECT site, day, visitor, place, ts, false AS is_hit FROM pings
  ),
  gaps AS (
    SELECT *, dateDiff('millisecond', lagInFrame(ts, 1, ts) OVER w, ts) > 1800000 AS is_gap FROM activity
    WINDOW w AS (PARTITION BY site, day, visitor ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
  ),
  numbered AS (
    SELECT *, sum(is_gap) OVER (PARTITION BY site, day, visitor ORDER BY place ROWS UNBOUNDED PRECEDING) AS visit FROM gaps
  ),
  hits AS (
    SELECT n.visit AS visit, i.site AS site, i.day AS day, i.visitor AS visitor, i.place AS place, i.ts AS ts,
      i.kind AS kind, i.path AS path, i.name AS name, i.source AS source, c.credit AS credit
    FROM numbered AS n
    INNER JOIN identity AS i ON i.site = n.site AND i.day = n.day AND i.visitor = n.visitor AND i.place = n.place
    LEFT JOIN credits AS c
      ON c.site = n.site AND c.day = n.day AND c.visitor = n.visitor AND c.view_place = toUInt64(n.place)
    WHERE n.is_hit
  ),
  visits_found AS (
    SELECT site, day, visitor, visit, toUInt32(toUnixTimestamp(min(ts))) AS start,
      countIf(kind = 'pageview') AS pageviews, countIf(kind = 'event') AS events,
      toUnixTimestamp(max(ts)) AS last, argMin(source, place) AS source, sum(credit) AS engaged_ms,
      arraySort(groupArrayIf((place, path, toUnixTimestamp(ts)), kind = 'pageview')) AS page_hits,
      arraySort(groupArrayIf((place, name), kind = 'event')) AS goal_hits
    FROM hits GROUP BY site, day, visitor, visit
  )
SELECT site, day, toString(visitor) AS visitor, start, pageviews, events, last - start AS length_s, source,
  page_hits.2 AS pages, arrayMap(second -> second - start, page_hits.3) AS page_s, goal_hits.2 AS goals, engaged_ms,
  toUInt8(count() OVER (PARTITION BY site, day, v.visitor) = 1) AS single,
  lagInFrame(last, 1, 0) OVER (PARTITION BY site, day, v.visitor ORDER BY start
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS previous_last
FROM visits_found AS v ORDER BY site, day, v.visitor, start`

export const visitsByDefinition = Effect.flatMap(ClickHouse, (clickhouse) =>
  clickhouse.query<DescribedVisit>(definition)
)
