import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { dead, done, type Job, queue } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import type { SeededRandom } from "#test/simulation/Seed.ts"

/** Jobs that say beforehand how they end, and handlers that write down each attempt before and after. */
export const Planned = Schema.Struct({
  /** attempts that fail */
  fails: Schema.Int,
  /** it ends dead, until it is revived */
  isDead: Schema.Boolean,
  /** it adds a row of the room when it is done */
  changes: Schema.Boolean
})
export type Planned = typeof Planned.Type

export const planned = queue("planned", Planned, { attemptsMax: 1_000 })

export const laneCount = 30

export const createTables = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`CREATE TABLE accepted (id text PRIMARY KEY, is_dead boolean NOT NULL, changes boolean NOT NULL)`
  yield* sql`CREATE TABLE room_rows (id text NOT NULL)`
  yield* sql`CREATE TABLE attempts (n bigserial PRIMARY KEY, id text NOT NULL, lane text NOT NULL, attempt integer NOT NULL,
    repeated boolean NOT NULL, phase text NOT NULL)`
})

/** Accepts some jobs in a transaction of the room, at times a whole batch in one lane. */
export const offerSome = Effect.fnUntraced(function* (prefix: string, random: SeededRandom) {
  const [jobs, sql] = [yield* Jobs, yield* SqlClient]
  const some = Array.from({ length: 1 + random.below(5) }, (_, n) => ({
    id: `${prefix}-${n}`,
    lane: `lane ${random.below(laneCount)}`,
    payload: {
      fails: random.chance(0.15) ? 1 + random.below(2) : 0,
      isDead: random.chance(0.05),
      changes: random.chance(0.5)
    },
    ...(random.chance(0.1) ? { notBefore: new Date(Date.now() + random.below(100)) } : {})
  }))
  yield* sql.withTransaction(
    Effect.gen(function* () {
      for (const { id, payload } of some)
        yield* sql`INSERT INTO accepted VALUES (${id}, ${payload.isDead}, ${payload.changes})`
      yield* jobs.offer(planned, some)
    })
  )
  return some.length
})

interface Handling {
  readonly random: SeededRandom
  /** writes the attempts down; the room's own client makes the change */
  readonly sql: SqlClient
  readonly room: SqlClient
  readonly isRevived: () => boolean
  readonly mostMillis: number
}

export const handleWith =
  ({ isRevived, mostMillis, random, room, sql }: Handling) =>
  ({ attempt, id, lane, payload, repeated }: Job<Planned>) =>
    Effect.gen(function* () {
      const note = (phase: "before" | "failed" | "after") =>
        sql`INSERT INTO attempts (id, lane, attempt, repeated, phase)
          VALUES (${id}, ${lane}, ${attempt}, ${repeated}, ${phase})`
      yield* note("before")
      yield* Effect.sleep(random.below(mostMillis))
      if (attempt <= payload.fails) {
        yield* note("failed")
        return yield* Effect.fail(new Error("as planned"))
      }
      yield* note("after")
      if (payload.isDead && !isRevived()) return dead("as planned")
      return done(payload.changes ? room`INSERT INTO room_rows VALUES (${id})` : undefined)
    })

/** Accepted jobs without an end. */
export const unended = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ jobs: number }>`SELECT count(*)::int AS jobs FROM accepted a
      WHERE NOT EXISTS (SELECT FROM jobs_ended e WHERE e.queue = ${planned.name} AND e.id = a.id)`,
    ([row]) => row?.jobs ?? 0
  )
)

/** Everything that contradicts the promise, once all jobs have ended: a line each. */
export const faults = Effect.gen(function* () {
  const sql = yield* SqlClient
  const name = planned.name
  const found = yield* sql<{ fault: string }>`
    WITH ended AS (SELECT * FROM jobs_ended WHERE queue = ${name}),
    begun AS (SELECT * FROM attempts WHERE phase = 'before'),
    winners AS (
      SELECT e.lane, e.seq, e.id, max(b.n) AS n FROM ended e JOIN begun b ON b.id = e.id AND b.attempt = e.attempts
      GROUP BY 1, 2, 3),
    ordered AS (SELECT *, lag(n) OVER (PARTITION BY lane ORDER BY seq) AS before FROM winners)
    SELECT 'not ended once: ' || a.id || ', ' || count(e.id) AS fault FROM accepted a LEFT JOIN ended e USING (id)
    GROUP BY a.id HAVING count(e.id) <> 1
    UNION ALL SELECT 'never accepted: ' || id FROM ended WHERE id NOT IN (SELECT id FROM accepted)
    UNION ALL SELECT 'ended otherwise than planned: ' || e.id || ', ' || e.outcome FROM ended e JOIN accepted a USING (id)
      WHERE (e.outcome = 'dead' AND NOT a.is_dead)
    UNION ALL SELECT 'still waits: ' || id FROM jobs WHERE queue = ${name}
    UNION ALL SELECT 'counts or holds a lane: ' || lane FROM job_lanes WHERE queue = ${name} AND (waiting <> 0 OR holder IS NOT NULL)
    UNION ALL SELECT 'changed the room ' || count(r.id) || ' times: ' || e.id FROM ended e JOIN accepted a USING (id)
      LEFT JOIN room_rows r USING (id) GROUP BY e.id, e.outcome, a.changes
      HAVING count(r.id) <> (e.outcome = 'done' AND a.changes)::int
    UNION ALL SELECT 'not marked as repeated: ' || b.id || ', ' || b.attempt FROM begun b
      WHERE b.attempt > 1 AND NOT b.repeated AND NOT EXISTS (
        SELECT FROM attempts f WHERE f.id = b.id AND f.phase = 'failed' AND f.attempt = b.attempt - 1)
    UNION ALL SELECT 'without an attempt: ' || e.id FROM ended e WHERE NOT EXISTS (SELECT FROM winners w WHERE w.id = e.id)
    UNION ALL SELECT 'out of order: ' || id FROM ordered WHERE n < before`
  return found.map(({ fault }) => fault)
})

/** Attempts that were told that an earlier one may have had its effect. */
export const repeatedCount = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ n: number }>`SELECT count(*)::int AS n FROM attempts WHERE phase = 'before' AND repeated`,
    ([row]) => row?.n ?? 0
  )
)
