import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Bot, DropReason } from "#schemas/analytics/Drops.ts"
import { AppConfig } from "#src/Config.ts"
import * as WaitingCounts from "#src/infra/postgres/WaitingCounts.ts"
import { botCountedAs, nameToCount } from "#streams/analytics/Bots.ts"
import { dayMillis, dayOf } from "#streams/analytics/EventTime.ts"
import type { Drop } from "#streams/analytics/Drop.ts"

/** The number of events of a dataset that were dropped on a UTC day for one reason, or because of one bot. */
interface DropCount {
  readonly dataset: string
  /** `2026-11-21` */
  readonly day: string
  readonly reason: DropReason
  /** with the reason `bot` */
  readonly bot: Bot | null
  readonly count: number
}

/**
 * Counts what was sent and is in no figure, per site, UTC day, reason and bot, for the site's owner. Counted in memory
 * and added to Postgres every `dropFlushMillis`: a crash loses that much of the counts (never of the events), and a flush
 * whose outcome is unknown is repeated and may count twice. While Postgres is away the counts wait.
 */
export class DropCounts extends Context.Service<
  DropCounts,
  {
    readonly count: (dataset: string, drop: Drop, nowMillis: number) => void
    /** stored and pending counts */
    readonly ofSite: (dataset: string, sinceDay: string) => Effect.Effect<ReadonlyArray<DropCount>, SqlError>
  }
>()("signalbox/analytics/DropCounts") {
  static readonly layer = Layer.effect(
    DropCounts,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  // By dataset, day, reason and name, between tabs; at most one for every site, reason and listed bot a day.
  const counts = yield* WaitingCounts.make<number>({
    title: "counts of dropped events",
    everyMillis: limits.dropFlushMillis,
    sum: (known, more) => known + more,
    write: (waiting) => Effect.provideService(write(waiting), SqlClient, sql)
  })

  return DropCounts.of({
    count: (dataset, { bot, reason }, nowMillis) =>
      counts.add(`${dataset}\t${dayOf(nowMillis)}\t${reason}\t${nameToCount(bot)}`, 1),
    ofSite: (dataset, sinceDay) =>
      Effect.gen(function* () {
        yield* counts.flush
        const rows = yield* sql<Omit<DropCount, "bot"> & { readonly name: string }>`
          SELECT dataset, to_char(day, 'YYYY-MM-DD') AS day, reason, name, count::float8 AS count FROM drops
          WHERE dataset = ${dataset} AND day >= ${sinceDay}::date ORDER BY day, reason, drops.count DESC, name`
        return rows.map(({ name, ...row }) => ({
          ...row,
          bot: row.reason === "bot" ? botCountedAs(name) : null
        }))
      })
  })
})

const write = (counts: ReadonlyMap<string, number>) =>
  addDrops(
    Array.from(counts, ([key, count]) => {
      const [dataset = "", day = "", reason = "", name = ""] = key.split("\t")
      return { dataset, day: Number(day), reason, name, count }
    })
  )

/** A count of `drops`: `day` in days since 1970-01-01, `name` as `nameToCount` has it. */
export interface DropRow {
  readonly dataset: string
  readonly day: number
  readonly reason: string
  readonly name: string
  readonly count: number
}

/** Adds to what is counted in Postgres, as far as the sites are there. */
export const addDrops = Effect.fnUntraced(function* (rows: ReadonlyArray<DropRow>) {
  const sql = yield* SqlClient
  const days = rows.map(({ day }) => new Date(day * dayMillis).toISOString().slice(0, 10))
  yield* sql`
    INSERT INTO drops (site, dataset, day, reason, name, count)
    SELECT sites.id, counted.*
    FROM unnest(${rows.map((row) => row.dataset)}::text[], ${days}::date[],
                ${rows.map((row) => row.reason)}::text[], ${rows.map((row) => row.name)}::text[],
                ${rows.map((row) => row.count)}::bigint[]) AS counted (dataset, day, reason, name, count)
    JOIN sites ON sites.id = split_part(counted.dataset, '~', 1) AND sites.deleted_at IS NULL
    ON CONFLICT (dataset, day, reason, name) DO UPDATE SET count = drops.count + excluded.count`
})
