import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { sinkFailureOf } from "#src/infra/postgres/SinkFailure.ts"

/** Requests of a user's keys on a day. */
export interface Count {
  readonly userId: string
  /** days since 1970-01-01 */
  readonly day: number
  requests: number
  errors: number
}

export interface RefusedCount {
  readonly count: Count
  readonly problem: string
}

/** If Postgres refuses so many counts and takes none, the table is at fault and not the counts. */
const refusedWithoutOne = 8

const dayMillis = 86_400_000

export const isoDay = (day: number): string => new Date(day * dayMillis).toISOString().slice(0, 10)

/** Adds the counts to those of the table, all or none. */
export const writeCounts = (
  sql: SqlClient,
  rows: ReadonlyArray<Count>
): Effect.Effect<unknown, SqlError> => sql`
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
export const writeTakenCounts = (
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
