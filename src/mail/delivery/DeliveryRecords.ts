import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { MailAttempt, MailStatus } from "#schemas/mail/Email.ts"
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

/** An attempt that came to something. */
export interface Attempted {
  readonly id: string
  /** counted from 1 */
  readonly attempt: number
  readonly route: string
  readonly outcome: MailAttempt["outcome"]
  readonly reply: string
  readonly beganMillis: number
}

/** The rows of deliveries, as attempts change them. */
export const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const blobs = yield* BlobStore

  const read = (id: string): Effect.Effect<DeliveryRow | undefined, SqlError> =>
    Effect.map(
      sql<DeliveryRow>`SELECT d.id, d.message_id, d.address, d.status, d.attempts, d.ending_attempt, m.header_id,
          m.from_address, m.is_bulk, m.unsubscribe_url, m.size, m.bytes, encode(m.sha256, 'hex') AS sha256, extract(epoch FROM jobs_now())::float8 * 1000 AS now_millis,
          extract(epoch FROM coalesce(d.retried_at, m.send_at, m.created_at))::float8 * 1000 AS due_millis
        FROM mail_deliveries d JOIN mail_messages m ON m.id = d.message_id WHERE d.id = ${id}`,
      ([row]) => row
    )

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

  /**
   * Says that the last byte is about to leave, where the job's turn is still this attempt's. A mark that is there is of
   * another process, whose turn ended between: the next turn tells of it.
   */
  const ending = (id: string, jobAttempt: number, attempt: number): Effect.Effect<boolean, SqlError> =>
    Effect.map(
      sql`UPDATE mail_deliveries d SET status = 'sending', ending_attempt = ${attempt}
        WHERE d.id = ${id} AND d.ended_at IS NULL AND d.ending_attempt IS NULL AND EXISTS (SELECT FROM jobs j
          WHERE j.queue = ${mailDeliveries.name} AND j.id = d.id AND j.attempts = ${jobAttempt}) RETURNING 1`,
      (rows) => rows.length > 0
    )

  /**
   * Writes an attempt down with the state that it leads to; `nextMillis`: until the next one, null where it was the last.
   * A delivery that was canceled meanwhile stays so, and one that another process has gone on with is left to it.
   */
  const attempted = (
    { attempt, beganMillis, id, outcome, reply, route }: Attempted,
    status: MailStatus,
    nextMillis: number | null
  ) =>
    sql`WITH noted AS (
        INSERT INTO mail_attempts (delivery_id, attempt, route, outcome, reply, began_at)
        VALUES (${id}, ${attempt}, ${route}, ${outcome}, ${reply.slice(0, limits.mailReplyCharacters)},
          to_timestamp(${beganMillis}::float8 / 1000))
        ON CONFLICT (delivery_id, attempt) DO NOTHING)
      UPDATE mail_deliveries SET status = ${status}, attempts = ${attempt}, ending_attempt = NULL,
        last_reply = ${reply.slice(0, limits.mailReplyCharacters)}, last_attempt_at = now(),
        next_attempt_at = now() + ${nextMillis}::float8 * interval '1 millisecond',
        ended_at = CASE WHEN ${nextMillis}::float8 IS NULL THEN now() END
      WHERE id = ${id} AND ended_at IS NULL AND attempts < ${attempt}`

  /** Nothing was handed over, whatever the mark says. `reply`: why; `nextMillis`: until it may be tried again. */
  const untried = (id: string, reply: string, nextMillis: number) =>
    sql`UPDATE mail_deliveries SET ending_attempt = NULL, last_reply = ${reply.slice(0, limits.mailReplyCharacters)},
      next_attempt_at = now() + ${nextMillis}::float8 * interval '1 millisecond',
      status = CASE WHEN attempts = 0 THEN 'queued' ELSE 'deferred' END WHERE id = ${id} AND ended_at IS NULL`

  /** It gets nothing from this owner, and no attempt is made. */
  const suppressed = (id: string, reason: string) =>
    sql`UPDATE mail_deliveries SET status = 'suppressed', last_reply = ${reason},
      next_attempt_at = NULL, ended_at = now() WHERE id = ${id} AND ended_at IS NULL`

  /** The sandbox's copy is there once, with the end of its delivery; not where that was canceled. */
  const toInbox = ({ address, id, message_id }: DeliveryRow, owner: string, head: Uint8Array) =>
    sql`INSERT INTO mail_inbox (delivery_id, user_id, message_id, address, head)
      SELECT ${id}, ${owner}, ${message_id}, ${address}, ${head} FROM mail_deliveries d
      WHERE d.id = ${id} AND d.ended_at IS NULL FOR UPDATE
      ON CONFLICT (delivery_id) DO NOTHING`

  return { read, messageOf, ending, attempted, suppressed, toInbox, untried }
})
