import { Context, Effect, Layer, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { dayMillis, dayOf } from "#streams/analytics/EventTime.ts"
import type { DropReason } from "#streams/analytics/DropReason.ts"

/** How many events of a site were dropped on a UTC day for one reason. */
export interface DropCount {
  readonly site: string
  /** `2026-11-21` */
  readonly day: string
  readonly reason: DropReason
  readonly count: number
}

/**
 * Counts what was sent and is in no figure, per site, UTC day and reason, for the site's owner. Counted in memory and
 * added to Postgres every `dropFlushMillis`: a crash loses that much of the counts (never of the events), and a flush
 * whose outcome is unknown is repeated and may count twice. While Postgres is away the counts wait.
 */
export class DropCounts extends Context.Service<
  DropCounts,
  {
    readonly count: (site: string, reason: DropReason, nowMillis: number) => void
    /** what is in Postgres and what waits for it */
    readonly ofSite: (site: string, sinceDay: string) => Effect.Effect<ReadonlyArray<DropCount>, SqlError>
  }
>()("signalbox/analytics/DropCounts") {
  static readonly layer = Layer.effect(
    DropCounts,
    Effect.suspend(() => make)
  )
}

/** Counts by `<site> <day> <reason>`; at most one of each for every site and reason a day. */
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
    count: (site, reason, nowMillis) => add(waiting, `${site} ${dayOf(nowMillis)} ${reason}`, 1),
    ofSite: (site, sinceDay) =>
      Effect.gen(function* () {
        yield* flush
        return yield* sql<DropCount>`
          SELECT site, to_char(day, 'YYYY-MM-DD') AS day, reason, count::float8 AS count FROM drops
          WHERE site = ${site} AND day >= ${sinceDay}::date ORDER BY day, reason`
      })
  })
})

const write = Effect.fnUntraced(function* (counts: Counts) {
  const sql = yield* SqlClient
  const rows = Array.from(counts, ([key, count]) => {
    const [site = "", day = "", reason = ""] = key.split(" ")
    return { site, day: new Date(Number(day) * dayMillis).toISOString().slice(0, 10), reason, count }
  })
  yield* sql`
    INSERT INTO drops (site, day, reason, count)
    SELECT * FROM unnest(${rows.map((row) => row.site)}::text[], ${rows.map((row) => row.day)}::date[],
                         ${rows.map((row) => row.reason)}::text[], ${rows.map((row) => row.count)}::bigint[])
    ON CONFLICT (site, day, reason) DO UPDATE SET count = drops.count + excluded.count`
})
