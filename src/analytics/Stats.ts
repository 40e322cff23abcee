import { Clock, Context, Effect, Layer } from "effect"
import type { SeriesEntry, SiteStats, Summary } from "#schemas/analytics/Stats.ts"
import { type Period, rangeOf } from "#streams/analytics/Periods.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import type { ClickHouseFailed, ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { EventDrain } from "./EventDrain.ts"
import type { SiteRow } from "./SiteDirectory.ts"
import { type Filters, type StatsRow, statsStatement } from "./StatsQuery.ts"

/** What was counted for a site. Readers see what was accepted before they asked. */
export class Stats extends Context.Service<
  Stats,
  {
    readonly ofSite: (
      site: SiteRow,
      period: Period,
      filters: Filters
    ) => Effect.Effect<SiteStats, SinkUnavailable | ClickHouseUnavailable | ClickHouseFailed>
  }
>()("signalbox/analytics/Stats") {
  static readonly layer = Layer.effect(
    Stats,
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const drain = yield* EventDrain
      return Stats.of({
        ofSite: Effect.fn("Stats.ofSite")(function* (site, period, filters) {
          yield* drain.flush
          const range = rangeOf(period, site.timezone, yield* Clock.currentTimeMillis)
          const { parameters, sql } = statsStatement(site.id, range, filters)
          const rows = yield* clickhouse.query<StatsRow>(sql, parameters)
          const inCell = new Map(rows.filter(isCurrentCell).map((row) => [row.cell, row]))
          const total = (isCurrent: 0 | 1) =>
            rows.find((row) => row.is_current === isCurrent && row.is_total === 1)
          return {
            site: { id: site.id, name: site.name, domain: site.domain, timezone: site.timezone },
            period,
            from: new Date(range.fromMillis).toISOString(),
            to: new Date(range.toMillis).toISOString(),
            granularity: range.granularity,
            filters: { ...filters },
            summary: summaryOf(total(1)),
            previous: summaryOf(total(0)),
            timeseries: range.buckets.map(({ label, startMillis }) =>
              seriesEntry(label, inCell.get(startMillis / 1000))
            )
          }
        })
      })
    })
  )
}

const isCurrentCell = (row: StatsRow): boolean => row.is_current === 1 && row.is_total === 0

const seriesEntry = (bucket: string, row: StatsRow | undefined): SeriesEntry => ({
  bucket,
  visitors: row?.visitors ?? 0,
  visits: row?.visits ?? 0,
  pageviews: row?.pageviews ?? 0
})

/** Rounded to so many decimals; 0 where there is nothing to divide by. */
const ratio = (part: number, whole: number, decimals: number): number =>
  whole === 0 ? 0 : Math.round((part / whole) * 10 ** decimals) / 10 ** decimals

/** Source: decisions, Analytics (rounding). */
const summaryOf = (row: StatsRow | undefined): Summary => {
  const visits = row?.visits ?? 0
  return {
    visitors: row?.visitors ?? 0,
    visits,
    pageviews: row?.pageviews ?? 0,
    events: row?.events ?? 0,
    viewsPerVisit: ratio(row?.pageviews ?? 0, visits, 2),
    bounceRate: ratio((row?.bounces ?? 0) * 100, visits, 2),
    avgDurationSec: ratio((row?.engaged_ms ?? 0) / 1000, visits, 1)
  }
}
