import { Clock, Context, Effect, Layer, type Stream } from "effect"
import { type Breakdown, breakdownLimit, type BreakdownParameters } from "#schemas/analytics/Breakdown.ts"
import type { SeriesEntry, SiteStats, StatsParameters, Summary } from "#schemas/analytics/Stats.ts"
import type { BadRequest } from "#schemas/core/Problem.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { EventDrain } from "../store/EventDrain.ts"
import type { StoreError } from "../store/EventStore.ts"
import { type BreakdownStoreRow, breakdownStatement } from "./BreakdownStatement.ts"
import { exportOf } from "./SiteExport.ts"
import { resolveQuery } from "./StatsQuery.ts"
import { type StatsRow, statsStatement } from "./StatsStatement.ts"

type Read<Query, Answer> = (
  site: SiteRow,
  query: Query
) => Effect.Effect<Answer, BadRequest | SinkUnavailable | StoreError>

/** The statistics of a site. Readers see all events accepted before they asked. */
export class Stats extends Context.Service<
  Stats,
  {
    readonly ofSite: Read<StatsParameters, SiteStats>
    /** The most frequent values of a dimension. */
    readonly breakdown: Read<BreakdownParameters, Breakdown>
    /** All events of a site and period as lines of JSON; fails where the store does not have all of them yet. */
    readonly exported: Read<StatsParameters, Stream.Stream<Uint8Array, StoreError>>
  }
>()("signalbox/analytics/Stats") {
  static readonly layer = Layer.effect(
    Stats,
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const drain = yield* EventDrain
      const resolved = (site: SiteRow, query: StatsParameters) =>
        Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => resolveQuery(site, query, nowMillis))
      return Stats.of({
        ofSite: Effect.fn("Stats.ofSite")(function* (site, query) {
          const { filters, period, range, timeZone } = yield* resolved(site, query)
          yield* drain.freshen(site.dataset)
          const { parameters, sql } = statsStatement(site.dataset, range, filters)
          const rows = yield* clickhouse.query<StatsRow>(sql, parameters)
          const inCell = new Map(rows.filter(isCurrentCell).map((row) => [row.cell, row]))
          return {
            site: { id: site.id, name: site.name, domain: site.domain, timezone: timeZone },
            period,
            from: new Date(range.fromMillis).toISOString(),
            to: new Date(range.toMillis).toISOString(),
            granularity: range.granularity,
            filters: { ...filters },
            summary: summaryOf(totalOf(rows, 1)),
            previous: summaryOf(totalOf(rows, 2)),
            timeseries: range.buckets.map(({ label, startMillis }) =>
              seriesEntry(label, inCell.get(Math.floor(startMillis / 1000)))
            )
          }
        }),
        breakdown: Effect.fn("Stats.breakdown")(function* (site, asked) {
          const { dimension, limit = breakdownLimit.default, ...query } = asked
          const { filters, period, range } = yield* resolved(site, query)
          yield* drain.freshen(site.dataset)
          const { parameters, sql } = breakdownStatement({
            site: site.dataset,
            range,
            filters,
            dimension,
            limit
          })
          const rows = yield* clickhouse.query<BreakdownStoreRow>(sql, parameters)
          return {
            dimension,
            period,
            filters: { ...filters },
            rows: rows.map((row) => ({ ...row, value: row.value === "" ? null : row.value }))
          }
        }),
        exported: Effect.fn("Stats.exported")(function* (site, query) {
          const { range } = yield* resolved(site, query)
          yield* drain.flush(site.dataset)
          return yield* exportOf(clickhouse, site.dataset, range)
        })
      })
    })
  )
}

const isCurrentCell = (row: StatsRow): boolean => row.period === 1 && row.is_total === 0

type Figures = Omit<StatsRow, "period" | "is_total" | "cell" | "first_seen">

const nothing: Figures = {
  visitors: 0,
  visits: 0,
  pageviews: 0,
  events: 0,
  bounces: 0,
  engaged_ms: 0
}

/** Of a whole period: as the store counted it, else the sum of its cells. */
const totalOf = (rows: ReadonlyArray<StatsRow>, period: StatsRow["period"]): Figures => {
  const ofPeriod = rows.filter((row) => row.period === period)
  const counted = ofPeriod.find((row) => row.is_total === 1)
  return counted ?? ofPeriod.reduce(addCell, nothing)
}

const addCell = (sum: Figures, row: StatsRow): Figures => ({
  visitors: sum.visitors + row.first_seen,
  visits: sum.visits + row.visits,
  pageviews: sum.pageviews + row.pageviews,
  events: sum.events + row.events,
  bounces: sum.bounces + row.bounces,
  engaged_ms: sum.engaged_ms + row.engaged_ms
})

const seriesEntry = (bucket: string, row: StatsRow | undefined): SeriesEntry => ({
  bucket,
  visitors: row?.visitors ?? 0,
  visits: row?.visits ?? 0,
  pageviews: row?.pageviews ?? 0
})

/** Rounded to so many decimals; 0 where there is nothing to divide by. */
const ratio = (part: number, whole: number, decimals: number): number =>
  whole === 0 ? 0 : Math.round((part / whole) * 10 ** decimals) / 10 ** decimals

/** Source: contract/analytics#summary. */
const summaryOf = ({ bounces, engaged_ms, events, pageviews, visitors, visits }: Figures): Summary => ({
  visitors,
  visits,
  pageviews,
  events,
  viewsPerVisit: ratio(pageviews, visits, 2),
  bounceRate: ratio(bounces * 100, visits, 2),
  avgDurationSec: ratio(engaged_ms / 1000, visits, 1)
})
