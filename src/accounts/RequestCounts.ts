import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import { sinkFailureOf } from "#src/infra/postgres/SinkFailure.ts"
import * as WaitingCounts from "#src/infra/postgres/WaitingCounts.ts"
import { AsideCounts, type Count } from "./AsideCounts.ts"

/** A user's requests, by UTC calendar. Errors are answers with a status of 400 or more. */
interface RequestFigures {
  readonly today: number
  /** ISO week, from Monday */
  readonly week: number
  readonly month: number
  readonly errorsThisMonth: number
}

/**
 * Counts the requests of each user's keys per UTC day. Counted in memory and added to Postgres every
 * `requestCountFlushMillis`: a crash loses that much. While Postgres is away the counts wait; there is one entry a user
 * and day.
 */
export class RequestCounts extends Context.Service<
  RequestCounts,
  {
    readonly record: (userId: string, isError: boolean, nowMillis: number) => void
    readonly ofUser: (userId: string) => Effect.Effect<RequestFigures, SqlError>
  }
>()("signalbox/accounts/RequestCounts") {
  static readonly layer = Layer.effect(
    RequestCounts,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  const aside = new AsideCounts((count) => Effect.mapError(writeCounts(sql, [count]), sinkFailureOf))
  yield* (yield* Quarantines).register("activity", aside.quarantine)
  const counts = yield* WaitingCounts.make<Count>({
    title: "request counts",
    everyMillis: limits.requestCountFlushMillis,
    sum: (known, more) => {
      known.requests += more.requests
      known.errors += more.errors
      return known
    },
    write: (waiting) =>
      Effect.flatMap(
        writeTakenCounts(sql, [...waiting.values()]),
        Effect.forEach(({ count, problem }) => aside.add(count, problem), { discard: true })
      )
  })

  return RequestCounts.of({
    record: (userId, isError, nowMillis) => {
      const day = Math.floor(nowMillis / dayMillis)
      counts.add(`${userId} ${day}`, { userId, day, requests: 1, errors: isError ? 1 : 0 })
    },
    ofUser: (userId) =>
      Effect.gen(function* () {
        yield* counts.flush
        const today = isoDay(Math.floor((yield* Clock.currentTimeMillis) / dayMillis))
        const rows = yield* sql<RequestFigures>`
          SELECT coalesce(sum(requests) FILTER (WHERE day = ${today}::date), 0)::float8 AS today,
                 coalesce(sum(requests) FILTER (WHERE day >= date_trunc('week', ${today}::date)), 0)::float8 AS week,
                 coalesce(sum(requests) FILTER (WHERE day >= date_trunc('month', ${today}::date)), 0)::float8 AS month,
                 coalesce(sum(errors) FILTER (WHERE day >= date_trunc('month', ${today}::date)), 0)::float8
                   AS "errorsThisMonth"
          FROM request_counts WHERE user_id = ${userId} AND day >= ${today}::date - 40`
        return rows[0] ?? { today: 0, week: 0, month: 0, errorsThisMonth: 0 }
      })
  })
})

interface RefusedCount {
  readonly count: Count
  readonly problem: string
}

/** If Postgres refuses so many counts and takes none, the table is at fault and not the counts. */
const refusedWithoutOne = 8

const dayMillis = 86_400_000

const isoDay = (day: number): string => new Date(day * dayMillis).toISOString().slice(0, 10)

/** Adds the counts to those of the table, all or none. */
const writeCounts = (sql: SqlClient, rows: ReadonlyArray<Count>): Effect.Effect<unknown, SqlError> => sql`
  INSERT INTO request_counts (user_id, day, requests, errors)
  SELECT * FROM unnest(${rows.map((row) => row.userId)}::text[], ${rows.map((row) => isoDay(row.day))}::date[],
                       ${rows.map((row) => row.requests)}::bigint[], ${rows.map((row) => row.errors)}::bigint[])
  ON CONFLICT (user_id, day) DO UPDATE SET requests = request_counts.requests + excluded.requests,
                                           errors = request_counts.errors + excluded.errors`

const isOfARecord = (error: SqlError): boolean => {
  const failure = sinkFailureOf(error)
  return failure._tag === "SinkRefused" && failure.blames === "record"
}

/** As `writeCounts`, except for the counts that Postgres refuses even alone; answers those. */
const writeTakenCounts = (
  sql: SqlClient,
  rows: ReadonlyArray<Count>
): Effect.Effect<ReadonlyArray<RefusedCount>, SqlError> => {
  const apart = (error: SqlError) =>
    Effect.filterOrFail(
      halved(sql, rows),
      (refused) => refused.length < rows.length || refused.length <= refusedWithoutOne,
      () => error
    )
  return writeCounts(sql, rows).pipe(
    Effect.as([]),
    Effect.catchIf(isOfARecord, (error) => sql.withTransaction(apart(error)))
  )
}

/** Halves a refused batch down to single counts. Each half has a savepoint. */
const halved = (
  sql: SqlClient,
  rows: ReadonlyArray<Count>
): Effect.Effect<ReadonlyArray<RefusedCount>, SqlError> =>
  sql.withTransaction(writeCounts(sql, rows)).pipe(
    Effect.as([]),
    Effect.catchIf(isOfARecord, (error) => {
      const [count] = rows
      if (count !== undefined && rows.length === 1)
        return Effect.succeed([{ count, problem: sinkFailureOf(error).problem }])
      const half = Math.ceil(rows.length / 2)
      return Effect.zipWith(
        halved(sql, rows.slice(0, half)),
        halved(sql, rows.slice(half)),
        (left, right) => [...left, ...right]
      )
    })
  )
