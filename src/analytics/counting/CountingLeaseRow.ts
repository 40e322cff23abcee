import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

export interface Taken {
  readonly epoch: number
  /** the one before may count for so long from now on; 0: it has let go, or was an earlier run of this very process */
  readonly waitMillis: number
}

interface Renewed {
  /** another process waits for its turn */
  readonly isWanted: boolean
}

/**
 * The lease on counting, one row in Postgres. It is held by whom the row names until `due`, by the clock of Postgres
 * alone, and has a new epoch whenever it changes hands. Every question is one statement on any connection, so that poolers,
 * lost connections and restarts of Postgres change nothing.
 */
export const makeCountingLeaseRow = Effect.map(SqlClient, (sql) => ({
  /** takes the lease if it is free, or was this holder's; undefined: another has it */
  take: (holder: string, lastsMillis: number): Effect.Effect<Taken | undefined, SqlError> =>
    sql<Taken>`
          WITH before AS (SELECT holder, lasts_ms FROM counting WHERE holder = ${holder} OR due <= clock_timestamp()
            AND (wanted_by IN ('', ${holder}) OR wanted_until <= clock_timestamp()) FOR UPDATE)
          UPDATE counting SET epoch = epoch + 1, holder = ${holder}, lasts_ms = ${lastsMillis},
            due = clock_timestamp() + ${lastsMillis}::int * interval '1 millisecond',
            wanted_by = CASE WHEN wanted_by = ${holder} THEN '' ELSE wanted_by END
          FROM before
          RETURNING epoch::float8 AS epoch,
            CASE WHEN before.holder IN ('', ${holder}) THEN 0 ELSE before.lasts_ms END::int AS "waitMillis"`.pipe(
      Effect.map(([taken]) => taken)
    ),
  /** undefined: the lease is not this holder's in this epoch any more */
  renew: (holder: string, epoch: number, lastsMillis: number): Effect.Effect<Renewed | undefined, SqlError> =>
    sql<Renewed>`
          UPDATE counting SET due = clock_timestamp() + ${lastsMillis}::int * interval '1 millisecond'
          WHERE holder = ${holder} AND epoch = ${epoch}::int8
          RETURNING wanted_by NOT IN ('', ${holder}) AND wanted_until > clock_timestamp() AS "isWanted"`.pipe(
      Effect.map(([renewed]) => renewed)
    ),
  /** gives the held lease a later epoch; false: it is not held any more */
  lift: (holder: string, epoch: number, to: number): Effect.Effect<boolean, SqlError> =>
    sql`UPDATE counting SET epoch = ${to}::int8 WHERE holder = ${holder} AND epoch = ${epoch}::int8 RETURNING 1`.pipe(
      Effect.map((rows) => rows.length === 1)
    ),
  /** asks for a turn, for `wantedMillis` from now; the next lease is this one's */
  want: (holder: string, wantedMillis: number): Effect.Effect<void, SqlError> =>
    Effect.asVoid(sql`
          UPDATE counting SET wanted_by = ${holder},
            wanted_until = clock_timestamp() + ${wantedMillis}::int * interval '1 millisecond'
          WHERE holder <> ${holder} AND (wanted_by IN ('', ${holder}) OR wanted_until <= clock_timestamp())`),
  /** lets go: the next one need not wait */
  release: (holder: string, epoch: number): Effect.Effect<void, SqlError> =>
    Effect.asVoid(sql`
          UPDATE counting SET holder = '', due = '-infinity' WHERE holder = ${holder} AND epoch = ${epoch}::int8`)
}))

export type CountingLeaseRow = Effect.Success<typeof makeCountingLeaseRow>
