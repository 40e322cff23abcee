import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import type { Page } from "#schemas/core/Page.ts"
import { Conflict, type NotFound, type ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { Email, MailAttempt, MailStatus } from "#schemas/mail/Email.ts"
import { addressOf } from "#streams/mail/Addresses.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import * as DeliveryRecords from "../delivery/DeliveryRecords.ts"
import * as MailMetrics from "../MailMetrics.ts"

interface Filter {
  readonly status?: MailStatus | undefined
  readonly to?: string | undefined
  readonly campaign?: string | undefined
  readonly since?: string | undefined
}

/** The page, and how many there are on all of them. */
interface Meta {
  readonly meta: Page & { readonly total: number }
}

/** The mails of owners, and what became of their recipients. Source: contract/mail#reading. */
export class Emails extends Context.Service<
  Emails,
  {
    readonly list: (
      owner: string,
      filter: Filter,
      page: Page
    ) => Effect.Effect<Meta & { readonly emails: ReadonlyArray<Email> }, SqlError>
    /** Waits so many seconds at most while a recipient's first attempt is under way, or to come. */
    readonly read: (
      owner: string,
      id: string,
      waitSeconds: number
    ) => Effect.Effect<Email, NotFound | ServiceUnavailable>
    readonly attempts: (
      owner: string,
      id: string
    ) => Effect.Effect<ReadonlyArray<MailAttempt>, NotFound | SqlError>
    /** as it was composed */
    readonly raw: (
      owner: string,
      id: string
    ) => Effect.Effect<Uint8Array, NotFound | ServiceUnavailable | SqlError>
    /** Deliveries that are not under way come to nothing. */
    readonly cancel: (owner: string, id: string) => Effect.Effect<void, NotFound | Conflict | SqlError>
  }
>()("signalbox/mail/Emails") {
  static readonly layer = Layer.effect(
    Emails,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      const { messageOf } = yield* DeliveryRecords.make
      const { found, listed } = statements(sql)

      const once = (owner: string, id: string) => storeAway(found(owner, id))
      return Emails.of({
        list: listed,
        read: (owner, id, waitSeconds) =>
          Effect.gen(function* () {
            const until = performance.now() + Math.min(waitSeconds, limits.mailWaitSeconds) * 1_000
            let email = yield* once(owner, id)
            while (isUnderWay(email) && performance.now() < until) {
              yield* Effect.sleep(limits.mailWaitEveryMillis)
              email = yield* once(owner, id)
            }
            return email
          }),
        ...parts(sql, found, messageOf, yield* MailMetrics.make)
      })
    })
  )
}

const isUnderWay = ({ recipients }: Email): boolean =>
  recipients.some(({ attempts, status }) => attempts === 0 && ["queued", "sending"].includes(status))

interface EmailRow extends Omit<Email, "created_at" | "from" | "recipients" | "send_at"> {
  readonly from_address: string
  readonly from_name: string | null
  readonly created_at: Date
  readonly send_at: Date | null
  readonly recipients: Email["recipients"]
}

const shown = ({ created_at, from_address, from_name, send_at, ...row }: EmailRow): Email => ({
  id: row.id,
  message_id_header: `<${row.message_id_header}>`,
  from: from_name === null ? from_address : `${from_name} <${from_address}>`,
  subject: row.subject,
  created_at: created_at.toISOString(),
  send_at: send_at?.toISOString() ?? null,
  campaign: row.campaign,
  recipients: row.recipients
})

/** An instant of a row, as answers have it, within JSON that Postgres makes. */
const instant = (sql: SqlClient, column: string): Fragment =>
  sql.literal(`to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)

const statements = (sql: SqlClient) => {
  const bounces = sql`(SELECT coalesce(json_agg(json_build_object('type', b.type, 'detail', b.detail,
      'received_at', ${instant(sql, "b.received_at")}) ORDER BY b.received_at), '[]'::json)
    FROM mail_bounces b WHERE b.delivery_id = d.id)`
  const recipients = sql`(SELECT json_agg(json_build_object('address', d.address, 'kind', d.kind, 'status', d.status,
      'attempts', d.attempts, 'last_reply', d.last_reply, 'last_attempt_at', ${instant(sql, "d.last_attempt_at")},
      'next_attempt_at', ${instant(sql, "d.next_attempt_at")}, 'opted_out_at', ${instant(sql, "d.opted_out_at")},
      'bounces', ${bounces}) ORDER BY d.place)
    FROM mail_deliveries d WHERE d.message_id = m.id) AS recipients`
  const columns = sql`m.id, m.header_id AS message_id_header, m.from_address, m.from_name, m.subject, m.created_at,
    m.send_at, m.campaign, ${recipients}`

  const found = (owner: string, id: string): Effect.Effect<Email, NotFound | SqlError> =>
    Effect.flatMap(
      sql<EmailRow>`SELECT ${columns} FROM mail_messages m WHERE m.id = ${id} AND m.user_id = ${owner}`,
      ([row]) => (row === undefined ? Effect.fail(notFound("Mail")) : Effect.succeed(shown(row)))
    )

  const listed = Effect.fnUntraced(function* (
    owner: string,
    { campaign, since, status, to }: Filter,
    page: Page
  ) {
    const ofRecipient: ReadonlyArray<Fragment> = [
      ...(status === undefined ? [] : [sql`d.status = ${status}`]),
      ...(to === undefined
        ? []
        : [sql`d.user_id = ${owner} AND lower(d.address) = ${(addressOf(to)?.address ?? to).toLowerCase()}`])
    ]
    const where = sql.and([
      sql`m.user_id = ${owner}`,
      ...(campaign === undefined ? [] : [sql`m.campaign = ${campaign}`]),
      ...(since === undefined ? [] : [sql`m.created_at >= ${new Date(since)}`]),
      ...(ofRecipient.length === 0
        ? []
        : [sql`EXISTS (SELECT FROM mail_deliveries d WHERE d.message_id = m.id AND ${sql.and(ofRecipient)})`])
    ])
    const rows = yield* sql<EmailRow>`SELECT ${columns} FROM mail_messages m WHERE ${where}
      ORDER BY m.seq DESC LIMIT ${page.limit} OFFSET ${page.offset}`
    const [count] = yield* sql<{
      total: number
    }>`SELECT count(*)::int AS total FROM mail_messages m WHERE ${where}`
    return { emails: rows.map(shown), meta: { ...page, total: count?.total ?? 0 } }
  })
  return { found, listed }
}

const parts = (
  sql: SqlClient,
  found: (owner: string, id: string) => Effect.Effect<Email, NotFound | SqlError>,
  messageOf: Effect.Success<typeof DeliveryRecords.make>["messageOf"],
  metrics: MailMetrics.MailMetrics
): Pick<Emails["Service"], "attempts" | "cancel" | "raw"> => ({
  attempts: Effect.fnUntraced(function* (owner: string, id: string) {
    yield* found(owner, id)
    return yield* sql<MailAttempt>`SELECT d.address, a.attempt, a.route, a.outcome, a.reply,
        ${instant(sql, "a.began_at")} AS began_at, ${instant(sql, "a.ended_at")} AS ended_at
      FROM mail_deliveries d JOIN mail_attempts a ON a.delivery_id = d.id
      WHERE d.message_id = ${id} ORDER BY a.began_at, d.place`
  }),
  raw: Effect.fnUntraced(function* (owner: string, id: string) {
    const [row] = yield* sql<Pick<DeliveryRecords.DeliveryRow, "bytes" | "sha256" | "size">>`
      SELECT bytes, encode(sha256, 'hex') AS sha256, size FROM mail_messages WHERE id = ${id} AND user_id = ${owner}`
    const bytes = row && (yield* messageOf(row))
    return bytes ?? (yield* notFound("Mail"))
  }),
  cancel: Effect.fnUntraced(function* (owner: string, id: string) {
    yield* found(owner, id)
    const ended =
      yield* sql`UPDATE mail_deliveries SET status = 'canceled', ended_at = now(), next_attempt_at = NULL
      WHERE message_id = ${id} AND user_id = ${owner} AND status IN ('queued', 'deferred') RETURNING 1`
    if (ended.length === 0) return yield* Conflict.of("No delivery of this mail waits")
    for (const _ of ended) metrics.ended("canceled")
  })
})
