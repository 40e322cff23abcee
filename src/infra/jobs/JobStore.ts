import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** The first job of a lane, and the lease on that lane. */
export interface Claimed {
  readonly lane: string
  /** names the lease */
  readonly epoch: string
  readonly seq: string
  readonly id: string
  readonly attempts: number
  readonly repeated: boolean
  /** JSON */
  readonly payload: string
  readonly offered_millis: number
}

/** The end of an attempt; `left` gives the lane back, and the attempt may have had its effect. */
export interface Settlement extends Pick<Claimed, "lane" | "epoch" | "seq"> {
  readonly outcome: "done" | "dead" | "again" | "later" | "withdrawn" | "busy" | "left"
  readonly restMillis: number
  readonly error: string | null
}

/** A dead job, for people. */
export interface DeadJob {
  readonly queue: string
  readonly lane: string
  readonly id: string
  readonly attempts: number
  readonly error: string | null
  readonly payload: unknown
  readonly offeredAt: Date
  readonly endedAt: Date
}

export interface QueueCounts {
  readonly queue: string
  readonly waiting: number
  readonly dead: number
  /** how long the lane that is due the longest has been; 0 where none is */
  readonly lateMillis: number
}

/** How late a queue is: both 0 where it is not. */
export interface Lateness {
  readonly queue: string
  /** how long the lane that is due the longest has been */
  readonly lateMillis: number
  /** how long a lane has been sent back since this server had no attempt to spare */
  readonly busyMillis: number
}

/** Characters of an error that are kept. */
const errorLengthMax = 2_000

/** Postgres has no text with a zero in it, and its client no array of nothing but nulls: '' stands for null. */
const textOf = (error: string | null): string =>
  (error ?? "").replaceAll("\u0000", "\uFFFD").slice(0, errorLengthMax)

/** The functions of src/infra/migrations/postgres/0014_Jobs.ts as one client calls them. */
export class JobStore {
  private readonly sql: SqlClient

  constructor(sql: SqlClient) {
    this.sql = sql
  }

  offer(
    queue: string,
    jobs: ReadonlyArray<{
      readonly lane: string
      readonly id: string
      readonly payload: string
      /** ISO 8601, or '' */
      readonly notBefore: string
    }>
  ): Effect.Effect<number, SqlError> {
    return Effect.map(
      this.sql<{ added: number }>`SELECT jobs_offer(${queue}, ${jobs.map(({ lane }) => lane)}::text[],
        ${jobs.map(({ id }) => id)}::text[], ${jobs.map(({ payload }) => payload)}::text[],
        ${jobs.map(({ notBefore }) => notBefore)}::text[]) AS added`,
      ([row]) => row?.added ?? 0
    )
  }

  claim(
    queue: string,
    holder: string,
    lanesMax: number,
    leaseMillis: number
  ): Effect.Effect<ReadonlyArray<Claimed>, SqlError> {
    return this.sql<Claimed>`SELECT * FROM jobs_claim(${queue}, ${holder}, ${lanesMax}, ${leaseMillis})`
  }

  /**
   * Answers the epochs that were still in force; the lanes of the others stay as they are. Fails with a LockTimeoutError
   * where a lane is locked for longer than `waitMillis`, and changes nothing then.
   */
  settle(
    queue: string,
    settlements: ReadonlyArray<Settlement>,
    waitMillis?: number
  ): Effect.Effect<ReadonlySet<string>, SqlError> {
    return this.epochs(
      this.sql`SELECT jobs_settle(${queue}, ${settlements.map(({ lane }) => lane)}::text[],
        ${settlements.map(({ epoch }) => epoch)}::text[], ${settlements.map(({ seq }) => seq)}::text[],
        ${settlements.map(({ outcome }) => outcome)}::text[],
        ${settlements.map(({ restMillis }) => String(restMillis))}::text[]::double precision[],
        ${settlements.map(({ error }) => textOf(error))}::text[], ${waitMillis ?? null}::integer) AS epochs`
    )
  }

  /** Settles those whose lanes no other transaction has locked; answers the others too. */
  settleFree(
    queue: string,
    settlements: ReadonlyArray<Settlement>
  ): Effect.Effect<{ held: ReadonlySet<string>; blocked: ReadonlyArray<Settlement> }, SqlError> {
    const lanes = settlements.map(({ lane }) => lane)
    return this.sql.withTransaction(
      Effect.gen({ self: this }, function* () {
        const [row] = yield* this.sql<{
          lanes: ReadonlyArray<string>
        }>`SELECT jobs_lock(${queue}, ${lanes}::text[]) AS lanes`
        const free = new Set(row?.lanes)
        const held = yield* this.settle(
          queue,
          settlements.filter(({ lane }) => free.has(lane))
        )
        return { held, blocked: settlements.filter(({ lane }) => !free.has(lane)) }
      })
    )
  }

  /** Answers the epochs that are still in force. */
  extend(
    queue: string,
    leases: ReadonlyArray<Pick<Claimed, "lane" | "epoch">>,
    leaseMillis: number
  ): Effect.Effect<ReadonlySet<string>, SqlError> {
    return this.epochs(
      this.sql`SELECT jobs_extend(${queue}, ${leases.map(({ lane }) => lane)}::text[],
        ${leases.map(({ epoch }) => epoch)}::text[], ${leaseMillis}) AS epochs`
    )
  }

  /** Milliseconds until a lane is due or its lease ends; undefined: none is going to be. */
  next(queue: string): Effect.Effect<number | undefined, SqlError> {
    return Effect.map(
      this.sql<{ millis: number | null }>`SELECT jobs_next(${queue}) AS millis`,
      ([row]) => row?.millis ?? undefined
    )
  }

  redrive(
    queue: string,
    ids: ReadonlyArray<string> | undefined,
    jobsMax: number
  ): Effect.Effect<number, SqlError> {
    return Effect.map(
      this.sql<{ added: number }>`SELECT jobs_redrive(${queue}, ${ids ?? null}::text[], ${jobsMax}) AS added`,
      ([row]) => row?.added ?? 0
    )
  }

  /** Lanes that rest are due at once; a lane whose job is being attempted stays as it is. */
  hasten(queue: string, lanes: ReadonlyArray<string>): Effect.Effect<unknown, SqlError> {
    return this.sql`WITH resting AS (
        SELECT lane FROM job_lanes WHERE queue = ${queue} AND lane = ANY(${lanes}::text[]) AND holder IS NULL
          AND waiting > 0
        ORDER BY lane FOR UPDATE)
      UPDATE job_lanes l SET rests_until = '-infinity', due_at = least(l.due_at, jobs_now())
      FROM resting WHERE l.queue = ${queue} AND l.lane = resting.lane`
  }

  /** Newest first; of all queues where it is undefined. */
  dead(queue: string | undefined, jobsMax: number): Effect.Effect<ReadonlyArray<DeadJob>, SqlError> {
    return this.sql<DeadJob>`SELECT queue, lane, id, attempts, last_error AS error, payload,
        offered_at AS "offeredAt", ended_at AS "endedAt"
      FROM jobs_ended WHERE outcome = 'dead' AND (${queue ?? null}::text IS NULL OR queue = ${queue ?? null})
      ORDER BY ended_at DESC, seq DESC LIMIT ${jobsMax}`
  }

  readonly counts = Effect.suspend(
    () =>
      this.sql<QueueCounts>`SELECT coalesce(l.queue, e.queue) AS queue, coalesce(l.waiting, 0)::float8 AS waiting,
        coalesce(e.dead, 0)::float8 AS dead, greatest(coalesce(l.late_millis, 0), 0)::float8 AS "lateMillis"
      FROM (SELECT queue, sum(waiting) AS waiting,
              extract(epoch FROM jobs_now() - min(due_at) FILTER (WHERE due_at < 'infinity')) * 1000 AS late_millis
            FROM job_lanes GROUP BY queue) AS l
      FULL JOIN (SELECT queue, count(*) AS dead FROM jobs_ended WHERE outcome = 'dead' GROUP BY queue) AS e USING (queue)
      ORDER BY 1`
  )

  /** By indexes, however much waits. */
  lateness(queues: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Lateness>, SqlError> {
    const since = (instant: "due_at" | "busy_since", isMeant: string) =>
      this.sql
        .literal(`greatest(coalesce(extract(epoch FROM jobs_now() - (SELECT l.${instant} FROM job_lanes l
        WHERE l.queue = q.queue AND l.due_at < 'infinity' ${isMeant} ORDER BY l.${instant} LIMIT 1)), 0) * 1000, 0)::float8`)
    return this.sql<Lateness>`SELECT q.queue, ${since("due_at", "")} AS "lateMillis",
        ${since("busy_since", "AND l.busy_since IS NOT NULL AND l.holder IS NULL")} AS "busyMillis"
      FROM unnest(${queues}::text[]) AS q(queue)`
  }

  /** From now on the ended jobs of this queue are its room's to delete, in all processes. */
  keep(queue: string): Effect.Effect<unknown, SqlError> {
    return this.sql`INSERT INTO jobs_kept (queue) VALUES (${queue}) ON CONFLICT DO NOTHING`
  }

  private readonly kept = Effect.suspend(() =>
    Effect.map(this.sql<{ queue: string }>`SELECT queue FROM jobs_kept`, (rows) =>
      rows.map(({ queue }) => queue)
    )
  )

  /**
   * Deletes ended jobs that are old, in statements of their own, so that what was done before an interruption stays; and
   * lanes without jobs that no longer rest: of those that are locked it waits for none.
   */
  deleteOld(doneMillis: number, deadMillis: number, rowsMax: number): Effect.Effect<void, SqlError> {
    const idle = `${60 * 60_000} milliseconds`
    const ended = Effect.flatMap(this.kept, (kept) => {
      // As literals, so that an index of the others serves them.
      const isOurs = this.sql.literal(kept.map((queue) => `AND queue <> '${queue}'`).join(" "))
      return this.sql`DELETE FROM jobs_ended WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM jobs_ended WHERE ended_at < jobs_now() - ${doneMillis} * interval '1 millisecond' ${isOurs}
          AND (outcome = 'done' OR ended_at < jobs_now() - ${deadMillis} * interval '1 millisecond')
        LIMIT ${rowsMax} FOR UPDATE SKIP LOCKED)) RETURNING 1`
    })
    const lanes = this.sql`DELETE FROM job_lanes WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM job_lanes WHERE waiting = 0 AND rests_until < jobs_now() - ${idle}::interval
      LIMIT ${rowsMax} FOR UPDATE SKIP LOCKED)) RETURNING 1`
    return Effect.forEach(
      [ended, lanes],
      (some) =>
        Effect.repeat(
          Effect.map(some, ({ length }) => length === rowsMax),
          { while: (isMore) => isMore }
        ),
      { discard: true }
    )
  }

  private epochs(
    statement: Effect.Effect<ReadonlyArray<object>, SqlError>
  ): Effect.Effect<ReadonlySet<string>, SqlError> {
    return Effect.map(
      statement as Effect.Effect<ReadonlyArray<{ readonly epochs: ReadonlyArray<string> }>, SqlError>,
      ([row]) => new Set(row?.epochs)
    )
  }
}
