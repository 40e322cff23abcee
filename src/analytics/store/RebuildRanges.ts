import { Effect } from "effect"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { VisitorDays } from "./VisitorDays.ts"

/** Visitors and events of one turn: fractions of a second, in which no batch is written. */
const rangeLimits = { visitors: 5_000, events: 20_000 }

export interface SiteDay {
  readonly day: number
  /** whether its events are few enough for one turn */
  readonly isShort: boolean
}

/** The UTC days on which a site has events or visits, between two (both included), in order. */
export const daysOf = (clickhouse: ClickHouseService, site: string, from: number, to: number) => {
  const where = "WHERE site = {site:String} AND day BETWEEN toDate({from:UInt16}) AND toDate({to:UInt16})"
  return clickhouse
    .query<{ readonly day_number: number; readonly events: number }>(
      `SELECT toUInt16(day) AS day_number, sum(count) AS events
      FROM (
        SELECT day, count() AS count FROM events ${where} GROUP BY day
        UNION ALL
        SELECT DISTINCT day, 0 AS count FROM visits FINAL ${where}
      ) GROUP BY day ORDER BY day`,
      { site, from, to }
    )
    .pipe(
      Effect.map((days) =>
        days.map(({ day_number, events }): SiteDay => ({
          day: Number(day_number),
          isShort: Number(events) <= rangeLimits.events
        }))
      )
    )
}

/** The last of the first visitors whose events make a turn; undefined when these visitors are no more than that. */
export const endOfRange = (clickhouse: ClickHouseService, { ofEvents }: VisitorDays) =>
  clickhouse
    .query<{ readonly identity: string; readonly events: number }>(
      `SELECT toString(visitor) AS identity, count() AS events FROM events WHERE ${ofEvents}
      GROUP BY visitor ORDER BY visitor LIMIT ${rangeLimits.visitors}`
    )
    .pipe(
      Effect.map((visitors): bigint | undefined => {
        let events = 0
        for (const visitor of visitors) {
          events += Number(visitor.events)
          if (events >= rangeLimits.events) return BigInt(visitor.identity)
        }
        const last = visitors.at(-1)
        return last !== undefined && visitors.length === rangeLimits.visitors
          ? BigInt(last.identity)
          : undefined
      })
    )
