import { Context, Effect, Layer, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Bot, DropReason } from "#schemas/analytics/Drops.ts"
import { AppConfig } from "#src/Config.ts"
import { botCountedAs, nameToCount } from "#streams/analytics/Bots.ts"
import { dayMillis, dayOf } from "#streams/analytics/EventTime.ts"
import type { Drop } from "#streams/analytics/Drop.ts"

/** The number of events of a site that were dropped on a UTC day for one reason, or because of one bot. */
export interface DropCount {
  readonly site: string
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
    readonly count: (site: string, drop: Drop, nowMillis: number) => void
    /** stored and pending counts */
    readonly ofSite: (site: string, sinceDay: string) => Effect.Effect<ReadonlyArray<DropCount>, SqlError>
  }
>()("signalbox/analytics/DropCounts") {
  static readonly layer = Layer.effect(
    DropCounts,
    Effect.suspend(() => make)
  )
}

/** Counts by site, day, reason and name, between tabs; at most one for every site, reason and listed bot a day. */
type Counts = Map<string, number>

const add = (counts: Counts, key: string, more: number): void => {
  counts.set(key, (counts.get(key) ?? 0) + more)
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  let waiting: Counts = new Map()

  const oneAtATime = yield* Semaphore.make(1)
  /** A reader that comes while counts are on their way waits for them: else they would be in neither place. */
  const flush = Effect.gen(function* () {
    if (waiting.size === 0) return
    const counts = waiting
    waiting = new Map()
    yield* write(counts).pipe(
      Effect.provideService(SqlClient, sql),
      Effect.onError(() => Effect.sync(() => counts.forEach((count, key) => add(waiting, key, count))))
    )
  }).pipe(oneAtATime.withPermits(1))

  let isAway = false
  const flushOrWait = flush.pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.sync(() => void (isAway = false)),
      onFailure: (error) =>
        Effect.suspend(() => {
          if (isAway) return Effect.void
          isAway = true
          return Effect.logWarning("Counts of dropped events wait for Postgres", error)
        })
    })
  )
  yield* Effect.addFinalizer(() => flushOrWait)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(limits.dropFlushMillis), flushOrWait)))

  return DropCounts.of({
    count: (site, { bot, reason }, nowMillis) =>
      add(waiting, `${site}\t${dayOf(nowMillis)}\t${reason}\t${nameToCount(bot)}`, 1),
    ofSite: (site, sinceDay) =>
      Effect.gen(function* () {
        yield* flush
        const rows = yield* sql<Omit<DropCount, "bot"> & { readonly name: string }>`
          SELECT site, to_char(day, 'YYYY-MM-DD') AS day, reason, name, count::float8 AS count FROM drops
          WHERE site = ${site} AND day >= ${sinceDay}::date ORDER BY day, reason, drops.count DESC, name`
        return rows.map(({ name, ...row }) => ({
          ...row,
          bot: row.reason === "bot" ? botCountedAs(name) : null
        }))
      })
  })
})

const write = (counts: Counts) =>
  addDrops(
    Array.from(counts, ([key, count]) => {
      const [site = "", day = "", reason = "", name = ""] = key.split("\t")
      return { site, day: Number(day), reason, name, count }
    })
  )

/** A count of `drops`: `day` in days since 1970-01-01, `name` as `nameToCount` has it. */
export interface DropRow {
  readonly site: string
  readonly day: number
  readonly reason: string
  readonly name: string
  readonly count: number
}

/** Adds to what is counted in Postgres. */
export const addDrops = Effect.fnUntraced(function* (rows: ReadonlyArray<DropRow>) {
  const sql = yield* SqlClient
  const days = rows.map(({ day }) => new Date(day * dayMillis).toISOString().slice(0, 10))
  yield* sql`
    INSERT INTO drops (site, day, reason, name, count)
    SELECT * FROM unnest(${rows.map((row) => row.site)}::text[], ${days}::date[],
                         ${rows.map((row) => row.reason)}::text[], ${rows.map((row) => row.name)}::text[],
                         ${rows.map((row) => row.count)}::bigint[])
    ON CONFLICT (site, day, reason, name) DO UPDATE SET count = drops.count + excluded.count`
})
