import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { gathering } from "#src/infra/postgres/Gathering.ts"
import type { MailAttempt, MailStatus } from "#schemas/mail/Email.ts"
import type { Limits } from "#src/Limits.ts"
import { mailDeliveries } from "./MailDeliveries.ts"

/** A delivery whose turn it is, with what its message says of it. */
export interface DeliveryRow {
  readonly id: string
  readonly message_id: string
  readonly address: string
  readonly status: MailStatus
  readonly attempts: number
  readonly ending_attempt: number | null
  readonly header_id: string
  readonly from_address: string
  readonly is_bulk: boolean
  readonly unsubscribe_url: string | null
  readonly size: number
  readonly bytes: Uint8Array | null
  /** as hex */
  readonly sha256: string | null
  readonly now_millis: number
  readonly due_millis: number
}

/** The turn of a job. */
interface JobTurn {
  readonly jobId: string
  readonly jobAttempt: number
}

/** An attempt that came to something. */
export interface Attempted extends JobTurn {
  readonly id: string
  /** it has set the mark: the turn of its job counts no longer, since no other attempt was made behind the mark */
  readonly isMarked: boolean
  /** counted from 1 */
  readonly attempt: number
  readonly route: string
  readonly outcome: MailAttempt["outcome"]
  readonly reply: string
  readonly beganMillis: number
}

/** An attempt that came to something, and the state that it leads to. */
export interface End extends Attempted {
  readonly status: MailStatus
  /** until the next attempt; null where it was the last */
  readonly nextMillis: number | null
}

/** An attempt whose next hop could not be used. */
interface Untried extends Pick<Attempted, "attempt" | "id" | "isMarked" | "reply" | keyof JobTurn> {
  readonly nextMillis: number
}

interface Mark extends JobTurn {
  readonly id: string
  readonly attempt: number
}

/** Of statements that carry several deliveries: after a lease nothing that they answer would hold. */
export const gatheringBounds = ({ jobLeaseMillis }: Limits) => ({ most: 64, millis: jobLeaseMillis })

/** The rows of deliveries, as attempts change them. One for all attempts of a process: they share statements. */
export const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const blobs = yield* BlobStore
  const statements = makeStatements(sql, limits.smtpReplyCharacters)
  const bounds = gatheringBounds(limits)

  /** A delivery whose turn it is; undefined: it is gone. */
  const read = yield* gathering(bounds, statements.read)

  /**
   * Says that the last byte is about to leave, where the job's turn is still this attempt's. A mark that is there is of
   * another process, whose turn ended between: the next turn tells of it.
   */
  const ending = yield* gathering(bounds, statements.ending)

  /**
   * Writes an attempt down with the state that it leads to. A delivery that was canceled meanwhile stays so, and one that
   * another process has gone on with is left to it: the answer is false.
   */
  const attemptedOnce = yield* gathering(bounds, statements.attempted)
  /** While Postgres is away the reply is known here alone: forgotten, it would have the mail sent twice. */
  const insistently = <A, E>(write: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.retry(write, {
      schedule: Schedule.spaced(limits.mailRecordEveryMillis),
      times: limits.mailRecordTimes
    })

  /** The composed message: from its row, or its blob; undefined: it is too old to be kept. */
  const messageOf = ({
    bytes,
    sha256,
    size
  }: Pick<DeliveryRow, "bytes" | "sha256" | "size">): Effect.Effect<
    Uint8Array | undefined,
    ServiceUnavailable
  > =>
    bytes !== null || sha256 === null
      ? Effect.succeed(bytes ?? undefined)
      : blobs.read({ sha256, sizeBytes: size })

  /** Nothing was handed over, whatever the mark says. `nextMillis`: until it may be tried again. */
  const untried = ({ attempt, id, isMarked, jobAttempt, jobId, nextMillis, reply }: Untried) =>
    insistently(sql`UPDATE mail_deliveries SET ending_attempt = NULL,
      last_reply = ${reply.slice(0, limits.smtpReplyCharacters)},
      next_attempt_at = now() + ${nextMillis}::float8 * interval '1 millisecond',
      status = CASE WHEN attempts = 0 THEN 'queued' ELSE 'deferred' END
      WHERE id = ${id} AND ended_at IS NULL AND attempts < ${attempt} AND (${isMarked} OR EXISTS (
        SELECT FROM jobs j WHERE j.queue = ${mailDeliveries.name} AND j.id = ${jobId} AND j.attempts = ${jobAttempt}))`)

  /** It ends without an attempt. False: it had ended already. */
  const endedUntried = (id: string, status: "suppressed" | "canceled", reason: string) =>
    Effect.map(
      sql`UPDATE mail_deliveries SET status = ${status}, last_reply = ${reason},
        next_attempt_at = NULL, ended_at = now() WHERE id = ${id} AND ended_at IS NULL RETURNING id`,
      ({ length }) => length > 0
    )

  /** The sandbox's copy is there once, with the end of its delivery; not where that was canceled. */
  const toInbox = ({ address, id, message_id }: DeliveryRow, owner: string, head: Uint8Array) =>
    sql`INSERT INTO mail_inbox (delivery_id, user_id, message_id, address, head)
      SELECT ${id}, ${owner}, ${message_id}, ${address}, ${head} FROM mail_deliveries d
      WHERE d.id = ${id} AND d.ended_at IS NULL FOR UPDATE
      ON CONFLICT (delivery_id) DO NOTHING`

  return {
    read,
    messageOf,
    ending,
    attempted: (end: End) => insistently(attemptedOnce(end)),
    insistently,
    /** `attempted` as a part of the transaction that has ended the job: its turn was looked at there */
    attemptedWithin: (end: End) =>
      Effect.map(statements.attempted([{ ...end, isMarked: true }]), ([isWritten]) => isWritten === true),
    endedUntried,
    toInbox,
    untried
  }
})

export type DeliveryRecords = Effect.Success<typeof make>

interface Identified {
  readonly id: string
}

/** Which of those that were asked for are among the rows that a statement changed. */
const areIn =
  (asked: ReadonlyArray<Identified>) =>
  (rows: ReadonlyArray<Identified>): ReadonlyArray<boolean> => {
    const changed = new Set(rows.map(({ id }) => id))
    return asked.map(({ id }) => changed.has(id))
  }

/** Rows are locked by id: two statements wait for each other, and never in a circle. */
const makeStatements = (sql: SqlClient, replyCharacters: number) => ({
  /** The bytes of a message come once. */
  read: (ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<DeliveryRow | undefined>, SqlError> =>
    Effect.map(
      sql<DeliveryRow>`SELECT d.id, d.message_id, d.address, d.status, d.attempts, d.ending_attempt, m.header_id,
          m.from_address, m.is_bulk, m.unsubscribe_url, m.size, encode(m.sha256, 'hex') AS sha256,
          CASE WHEN row_number() OVER (PARTITION BY d.message_id ORDER BY d.id) = 1 THEN m.bytes END AS bytes,
          extract(epoch FROM jobs_now())::float8 * 1000 AS now_millis,
          extract(epoch FROM coalesce(d.retried_at, m.send_at, m.created_at))::float8 * 1000 AS due_millis
        FROM mail_deliveries d JOIN mail_messages m ON m.id = d.message_id WHERE d.id = ANY(${ids}::text[])`,
      (rows) => {
        const bytes = new Map(
          rows.flatMap((row) => (row.bytes === null ? [] : [[row.message_id, row.bytes]]))
        )
        const found = new Map(
          rows.map((row) => [row.id, { ...row, bytes: bytes.get(row.message_id) ?? null }])
        )
        return ids.map((id) => found.get(id))
      }
    ),

  ending: (marks: ReadonlyArray<Mark>): Effect.Effect<ReadonlyArray<boolean>, SqlError> =>
    Effect.map(
      sql<{ id: string }>`WITH asked AS (
          SELECT u.id, u.attempt FROM unnest(${marks.map(({ id }) => id)}::text[], ${marks.map(({ jobId }) => jobId)}::text[],
            ${marks.map(({ jobAttempt }) => jobAttempt)}::integer[], ${marks.map(({ attempt }) => attempt)}::integer[])
            AS u(id, job_id, job_attempt, attempt)
          JOIN jobs j ON j.queue = ${mailDeliveries.name} AND j.id = u.job_id AND j.attempts = u.job_attempt),
        locked AS (SELECT d.id, a.attempt FROM mail_deliveries d JOIN asked a ON a.id = d.id
          WHERE d.ended_at IS NULL AND d.ending_attempt IS NULL ORDER BY d.id FOR UPDATE OF d)
        UPDATE mail_deliveries d SET status = 'sending', ending_attempt = l.attempt FROM locked l WHERE d.id = l.id
        RETURNING d.id`,
      areIn(marks)
    ),

  /** Whether each was written. */
  attempted: (ends: ReadonlyArray<End>): Effect.Effect<ReadonlyArray<boolean>, SqlError> =>
    Effect.map(
      sql<{ id: string }>`WITH asked AS (
        SELECT * FROM unnest(${ends.map(({ id }) => id)}::text[], ${ends.map(({ attempt }) => attempt)}::integer[],
          ${ends.map(({ route }) => route)}::text[], ${ends.map(({ outcome }) => outcome)}::text[],
          ${ends.map(({ reply }) => reply.slice(0, replyCharacters))}::text[],
          ${ends.map(({ beganMillis }) => String(beganMillis))}::text[]::float8[], ${ends.map(({ status }) => status)}::text[],
          ${ends.map(({ nextMillis }) => String(nextMillis ?? -1))}::text[]::float8[],
          ${ends.map(({ isMarked }) => isMarked)}::boolean[], ${ends.map(({ jobId }) => jobId)}::text[],
          ${ends.map(({ jobAttempt }) => jobAttempt)}::integer[])
          AS u(id, attempt, route, outcome, reply, began_millis, status, next_millis, is_marked, job_id, job_attempt)
        WHERE u.is_marked OR EXISTS (SELECT FROM jobs j
          WHERE j.queue = ${mailDeliveries.name} AND j.id = u.job_id AND j.attempts = u.job_attempt)),
      noted AS (
        INSERT INTO mail_attempts (delivery_id, attempt, route, outcome, reply, began_at)
        SELECT id, attempt, route, outcome, reply, to_timestamp(began_millis / 1000) FROM asked
        ON CONFLICT (delivery_id, attempt) DO NOTHING),
      locked AS (SELECT a.* FROM mail_deliveries d JOIN asked a ON a.id = d.id
        WHERE d.ended_at IS NULL AND d.attempts < a.attempt ORDER BY d.id FOR UPDATE OF d)
      UPDATE mail_deliveries d SET status = l.status, attempts = l.attempt, ending_attempt = NULL,
        last_reply = l.reply, last_attempt_at = now(),
        next_attempt_at = CASE WHEN l.next_millis >= 0 THEN now() + l.next_millis * interval '1 millisecond' END,
        ended_at = CASE WHEN l.next_millis < 0 THEN now() END
      FROM locked l WHERE d.id = l.id RETURNING d.id`,
      areIn(ends)
    )
})
