import type { BadRequest } from "#schemas/core/Problem.ts"
import { Clock, Context, Effect, Layer } from "effect"
import { type Breakdown, breakdownLimit, type BreakdownParameters } from "#schemas/analytics/Breakdown.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { type BreakdownStoreRow, breakdownStatement } from "./BreakdownStatement.ts"
import { EventDrain } from "../store/EventDrain.ts"
import type { StoreError } from "../store/EventStore.ts"
import { resolveQuery } from "./StatsQuery.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"

/** The most frequent values of a dimension. Readers see what was accepted before they asked. */
export class Breakdowns extends Context.Service<
  Breakdowns,
  {
    readonly ofSite: (
      site: SiteRow,
      query: BreakdownParameters
    ) => Effect.Effect<Breakdown, BadRequest | SinkUnavailable | StoreError>
  }
>()("signalbox/analytics/Breakdowns") {
  static readonly layer = Layer.effect(
    Breakdowns,
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const drain = yield* EventDrain
      return Breakdowns.of({
        ofSite: Effect.fn("Breakdowns.ofSite")(function* (
          site,
          { dimension, limit = breakdownLimit.default, ...query }
        ) {
          const nowMillis = yield* Clock.currentTimeMillis
          const { filters, period, range } = yield* resolveQuery(site, query, nowMillis)
          yield* drain.freshen(site.id)
          const asked = { site: site.id, range, filters, dimension, limit }
          const { parameters, sql } = breakdownStatement(asked)
          const rows = yield* clickhouse.query<BreakdownStoreRow>(sql, parameters)
          return {
            dimension,
            period,
            filters: { ...filters },
            rows: rows.map((row) => ({ ...row, value: row.value === "" ? null : row.value }))
          }
        })
      })
    })
  )
}
