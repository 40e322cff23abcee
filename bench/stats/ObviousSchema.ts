import { type ClickHouseClient } from "@clickhouse/client"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import { attributeColumns } from "#streams/analytics/VisitEvent.ts"
import { type PeriodRange, rangeOf } from "#streams/analytics/Periods.ts"

/**
 * The schema that comes to mind first, and that other products have: one table of events in which each row carries its
 * visitor and its session, default compression, read with `uniqExact` and a GROUP BY over sessions. Sessions were
 * already told apart when rows are written, as those products do in memory; `bySessionsOfNow` does it in the query.
 */
const table = "obvious.events"

const copied = ["name", "hostname", "path", ...attributeColumns, "props_keys", "props_values"]

const textType = (name: string): string =>
  name.startsWith("props_")
    ? "Array(String)"
    : /^(path|referrer)$/.test(name)
      ? "String"
      : "LowCardinality(String)"

const create = `
CREATE TABLE ${table} (
  site LowCardinality(String), ts DateTime, kind Enum8('pageview' = 1, 'event' = 2, 'engage' = 3),
  visitor UInt64, session UInt64, engaged_ms UInt32, pv String,
  ${copied.map((name) => `${name} ${textType(name)}`).join(", ")}
) ENGINE = MergeTree PARTITION BY toYYYYMM(ts) ORDER BY (site, toDate(ts), visitor, ts)`

/** A day at a time: the sort that separates the sessions has to fit in memory. */
const copyDay = (day: number): string => `
INSERT INTO ${table} SELECT site, ts, kind, visitor,
  cityHash64(visitor, sum(is_new) OVER (PARTITION BY visitor ORDER BY ts ROWS UNBOUNDED PRECEDING)), engaged_ms, pv,
  ${copied.join(", ")}
FROM (
  SELECT *, ts, toUnixTimestamp(ts) - toUnixTimestamp(lagInFrame(ts, 1, toDateTime64(0, 3)) OVER (
      PARTITION BY visitor ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) > 1800 AS is_new
  FROM events WHERE day = toDate(${day})
)`

const ownSettings = { max_execution_time: 600, max_memory_usage: "800000000" }

/** Copies the events of `events` from some UTC days into the table, and merges it. */
export const makeObvious = async (
  clickhouse: ClickHouseClient,
  fromMillis: number,
  toMillis: number
): Promise<void> => {
  const run = (query: string) => clickhouse.command({ query, clickhouse_settings: ownSettings })
  await run("DROP DATABASE IF EXISTS obvious SYNC")
  await run("CREATE DATABASE obvious")
  await run(create)
  for (let day = Math.floor(fromMillis / dayMillis); day <= Math.floor(toMillis / dayMillis); day++) {
    await run(copyDay(day))
  }
  await run(`OPTIMIZE TABLE ${table} FINAL`)
}

const at = (millis: number): string => `toDateTime(${Math.floor(millis / 1000)}, 'UTC')`

const within = (site: string, { fromMillis, toMillis }: { fromMillis: number; toMillis: number }): string =>
  `site = '${site}' AND ts >= ${at(fromMillis)} AND ts < ${at(toMillis)}`

export interface ObviousQuestion {
  readonly site: string
  readonly timeZone: string
  readonly nowMillis: number
}

const days30 = ({ nowMillis, timeZone }: ObviousQuestion): PeriodRange => rangeOf("30d", timeZone, nowMillis)

/** A visitor's number is good for one day: the same number on two days is two visitors. */
const identity = "toDate(ts, 'UTC'), visitor"

/** Visitors, visits, page views and bounces in a stretch of time, from `source` with its sessions. */
const totals = (source: string): string => `
SELECT uniqExactIf(day, visitor, views + goals > 0) AS visitors, count() AS visits, sum(views) AS pageviews, sum(goals) AS events,
  countIf(views = 1 AND goals = 0) AS bounces, sum(engaged) AS engaged_ms
FROM (
  SELECT visitor, session, min(toDate(ts, 'UTC')) AS day, countIf(kind = 'pageview') AS views,
    countIf(kind = 'event') AS goals, sum(engaged_ms) AS engaged
  FROM ${source} GROUP BY visitor, session
)`

const series = (question: ObviousQuestion): string => `
SELECT toStartOfDay(ts, '${question.timeZone}') AS bucket, uniqExactIf(${identity}, kind != 'engage') AS visitors,
  uniqExact(session) AS visits, countIf(kind = 'pageview') AS pageviews
FROM ${table} WHERE ${within(question.site, days30(question))} GROUP BY bucket ORDER BY bucket`

/** 30 days, the 30 before, and the series: a statement each. */
export const summary = (question: ObviousQuestion): ReadonlyArray<string> => {
  const range = days30(question)
  const of = (part: { fromMillis: number; toMillis: number }): string =>
    totals(`${table} WHERE ${within(question.site, part)}`)
  return [of(range), of(range.previous), series(question)]
}

/** The same from events that know no session. */
export const summaryBySessionsOfNow = (question: ObviousQuestion): ReadonlyArray<string> => {
  const range = days30(question)
  const of = (part: { fromMillis: number; toMillis: number }): string =>
    totals(`(
      SELECT visitor, kind, engaged_ms, ts,
        sum(is_new) OVER (PARTITION BY visitor ORDER BY ts ROWS UNBOUNDED PRECEDING) AS session
      FROM (
        SELECT visitor, kind, engaged_ms, ts, ts - lagInFrame(ts) OVER (
          PARTITION BY visitor ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) > 1800 AS is_new
        FROM ${table} WHERE ${within(question.site, part)}
      )
    )`)
  return [of(range), of(range.previous), series(question)]
}

export const pages = (question: ObviousQuestion, goal?: string): ReadonlyArray<string> => {
  const scope = within(question.site, days30(question))
  const sessions = `AND session IN (SELECT session FROM ${table} WHERE ${scope} AND kind = 'event' AND name = '${goal}')`
  return [
    `SELECT path AS value, uniqExact(${identity}) AS visitors, count() AS pageviews FROM ${table}
    WHERE ${scope} AND kind = 'pageview' ${goal === undefined ? "" : sessions}
    GROUP BY path ORDER BY visitors DESC, pageviews DESC, path LIMIT 10`
  ]
}

/** A visit's source is that of its first event. */
export const sources = (question: ObviousQuestion): ReadonlyArray<string> => [
  `SELECT value, uniqExact(day, visitor) AS visitors, sum(views) AS pageviews, count() AS visits FROM (
    SELECT visitor, session, min(toDate(ts, 'UTC')) AS day, argMin(source, (ts, kind)) AS value, countIf(kind = 'pageview') AS views
    FROM ${table} WHERE ${within(question.site, days30(question))} AND kind != 'engage' GROUP BY visitor, session
  ) GROUP BY value ORDER BY visitors DESC, visits DESC, value LIMIT 10`
]
