import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"

/** Deletes, some at a time: bodies 30 days after their first try was due, mails after 90, the inbox of the sandbox after 7. Source: contract/mail#reading. */
export const deleteOldMail = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const most = limits.mailDeletedAtOnce
  const whole = <E, R>(some: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
    Effect.gen(function* () {
      while ((yield* some).length >= most);
    })
  const before = (days: number) => sql`now() - ${days} * interval '1 day'`
  yield* whole(sql`UPDATE mail_messages SET bytes = NULL, store = NULL, sha256 = NULL WHERE id IN (
    SELECT id FROM mail_messages WHERE created_at < ${before(limits.mailBodyDays)}
      AND coalesce(send_at, created_at) < ${before(limits.mailBodyDays)} AND (bytes IS NOT NULL OR sha256 IS NOT NULL) LIMIT ${most})
    RETURNING 1`)
  yield* whole(sql`WITH gone AS (
      DELETE FROM mail_messages WHERE id IN (
        SELECT id FROM mail_messages WHERE created_at < ${before(limits.mailDays)} LIMIT ${most}) RETURNING id),
    deliveries AS (DELETE FROM mail_deliveries d USING gone WHERE d.message_id = gone.id RETURNING d.id),
    attempts AS (DELETE FROM mail_attempts a USING deliveries d WHERE a.delivery_id = d.id),
    bounces AS (DELETE FROM mail_bounces b USING deliveries d WHERE b.delivery_id = d.id),
    inbox AS (DELETE FROM mail_inbox i USING gone WHERE i.message_id = gone.id)
    SELECT id FROM gone`)
  yield* whole(sql`DELETE FROM mail_inbox WHERE delivery_id IN (
    SELECT delivery_id FROM mail_inbox WHERE received_at < ${before(limits.mailInboxDays)} LIMIT ${most}) RETURNING 1`)
  yield* sql`DELETE FROM mail_inbox i USING (
      SELECT user_id, seq FROM (SELECT user_id, seq, row_number() OVER (PARTITION BY user_id ORDER BY seq DESC) AS place
        FROM mail_inbox) AS newest WHERE place = ${limits.mailInboxShown + 1}) AS beyond
    WHERE i.user_id = beyond.user_id AND i.seq <= beyond.seq`
})

export const layer = Sweeps.layer({ name: "old-mail", every: "sweepEveryMillis", run: deleteOldMail })
