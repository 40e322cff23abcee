import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { BounceType, ReportedEnd } from "#streams/mail/BounceType.ts"
import { AppConfig } from "#src/Config.ts"
import { Suppressions } from "../suppressions/Suppressions.ts"
import { cleaned } from "../transports/SmtpReply.ts"

/** A delivery that a report may be about. */
export interface ReportedDelivery {
  readonly id: string
  readonly message_id: string
  readonly user_id: string
  readonly address: string
}

/** The consequences of a report for its delivery. `isKnown`: it came before. */
export interface NotedBounce {
  readonly isKnown: boolean
  readonly isSuppressed: boolean
}

/** The rows of deliveries, as reports of others change them. */
export const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const suppressions = yield* Suppressions
  const softRun = makeSoftRun(sql, limits.mailSoftBounces)
  const columns = sql.literal("id, message_id, user_id, address")

  const find = (id: string): Effect.Effect<ReportedDelivery | undefined, SqlError> =>
    Effect.map(sql<ReportedDelivery>`SELECT ${columns} FROM mail_deliveries WHERE id = ${id}`, ([row]) => row)

  const ofMail = (id: string, owner: string): Effect.Effect<ReadonlyArray<ReportedDelivery>, SqlError> =>
    sql<ReportedDelivery>`SELECT ${columns} FROM mail_deliveries WHERE message_id = ${id} AND user_id = ${owner}
      ORDER BY place`

  /** False: it is known, or the delivery is gone. */
  const isNew = (id: string, type: BounceType, detail: string) =>
    Effect.map(
      sql`INSERT INTO mail_bounces (delivery_id, attempt, type, detail)
        SELECT d.id, d.attempts, ${type}, ${detail} FROM mail_deliveries d WHERE d.id = ${id} FOR UPDATE
        ON CONFLICT DO NOTHING RETURNING 1`,
      (rows) => rows.length > 0
    )

  /** One that was not handed over cannot have come back. */
  const bounced = (id: string, detail: string) =>
    sql`UPDATE mail_deliveries SET status = 'bounced', last_reply = ${detail}, next_attempt_at = NULL,
        ending_attempt = NULL, ended_at = coalesce(ended_at, now())
      WHERE id = ${id} AND status IN ('sent', 'unknown', 'deferred', 'sending')`

  const suppressedBy = Effect.fnUntraced(function* (
    { address, id, user_id: owner }: ReportedDelivery,
    { detail, type }: ReportedEnd
  ) {
    if (type === "soft" && (yield* softRun(owner, address, id)) < limits.mailSoftBounces) return false
    const note = type === "soft" ? `${limits.mailSoftBounces} soft bounces in a row: ${detail}` : detail
    yield* suppressions.suppress(owner, address, type === "complaint" ? type : "hard_bounce", note)
    return true
  })

  const note = Effect.fnUntraced(function* (
    delivery: ReportedDelivery,
    end: ReportedEnd
  ): Effect.fn.Return<NotedBounce, SqlError> {
    const detail = cleaned(end.detail, limits.smtpReplyCharacters)
    // Reports of an owner's mails take turns: of two that come at once, each would not count the other.
    yield* sql`SELECT id FROM users WHERE id = ${delivery.user_id} FOR NO KEY UPDATE`
    if (!(yield* isNew(delivery.id, end.type, detail))) return { isKnown: true, isSuppressed: false }
    if (end.isFailed) yield* bounced(delivery.id, detail)
    return { isKnown: false, isSuppressed: yield* suppressedBy(delivery, { ...end, detail }) }
  }, sql.withTransaction)

  return { find, ofMail, note }
})

/**
 * Counts the mails around one that bounced softly, without one between them that was sent and did not come back; at most
 * `most` before it and behind it are looked at.
 */
const makeSoftRun = (sql: SqlClient, most: number) =>
  Effect.fnUntraced(function* (owner: string, address: string, id: string) {
    const rows = yield* sql<{ is_soft: boolean; is_earlier: boolean }>`
      WITH mails AS (
        SELECT m.seq, d.id, EXISTS (SELECT FROM mail_bounces b WHERE b.delivery_id = d.id AND b.type = 'soft') AS is_soft,
          d.status
        FROM mail_deliveries d JOIN mail_messages m ON m.id = d.message_id
        WHERE d.user_id = ${owner} AND lower(d.address) = lower(${address})),
      this AS (SELECT seq FROM mails WHERE id = ${id})
      (SELECT mails.seq, is_soft, true AS is_earlier FROM mails, this
        WHERE mails.seq <= this.seq AND (is_soft OR status = 'sent') ORDER BY mails.seq DESC LIMIT ${most})
      UNION ALL
      (SELECT mails.seq, is_soft, false FROM mails, this
        WHERE mails.seq > this.seq AND (is_soft OR status = 'sent') ORDER BY mails.seq LIMIT ${most})`
    const runOf = (side: typeof rows) => {
      const end = side.findIndex(({ is_soft }) => !is_soft)
      return end < 0 ? side.length : end
    }
    return runOf(rows.filter((row) => row.is_earlier)) + runOf(rows.filter((row) => !row.is_earlier))
  })
