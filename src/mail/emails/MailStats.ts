import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type EmailStats, type MailStatus, mailStatuses, statsDaysDefault } from "#schemas/mail/Email.ts"

interface Filter {
  readonly since?: string | undefined
  readonly campaign?: string | undefined
}

/** Numbers of an owner's recipients. Source: contract/mail#reading. */
export class MailStats extends Context.Service<
  MailStats,
  { readonly of: (owner: string, filter: Filter) => Effect.Effect<EmailStats, SqlError> }
>()("signalbox/mail/MailStats") {
  static readonly layer = Layer.effect(
    MailStats,
    Effect.map(SqlClient, (sql) => MailStats.of({ of: makeOf(sql) }))
  )
}

interface Row {
  readonly date: string
  readonly status: MailStatus
  readonly recipients: number
  readonly opted_out: number
  readonly complaints: number
}

type Counts = Readonly<Record<MailStatus, number>>

const countsOf = (rows: ReadonlyArray<Row>): Counts => {
  const counts = Object.fromEntries(mailStatuses.map((status) => [status, 0])) as Record<MailStatus, number>
  for (const { recipients, status } of rows) counts[status] += recipients
  return counts
}

const sumOf = (rows: ReadonlyArray<Row>, column: "recipients" | "opted_out" | "complaints"): number =>
  rows.reduce((sum, row) => sum + row[column], 0)

const dayMillis = 86_400_000

const makeOf = (sql: SqlClient) =>
  Effect.fn("MailStats.of")(function* (owner: string, { campaign, since }: Filter) {
    const from =
      since === undefined
        ? (yield* Clock.currentTimeMillis) - statsDaysDefault * dayMillis
        : Date.parse(since)
    const where = sql.and([
      sql`m.user_id = ${owner}`,
      sql`m.created_at >= ${new Date(from)}`,
      ...(campaign === undefined ? [] : [sql`m.campaign = ${campaign}`])
    ])
    const rows =
      yield* sql<Row>`SELECT to_char(m.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS date, d.status,
        count(*)::int AS recipients, count(d.opted_out_at)::int AS opted_out,
        count(*) FILTER (WHERE EXISTS (SELECT FROM mail_bounces b
          WHERE b.delivery_id = d.id AND b.type = 'complaint'))::int AS complaints
      FROM mail_messages m JOIN mail_deliveries d ON d.message_id = m.id
      WHERE ${where} GROUP BY 1, 2 ORDER BY 1`
    const dates = [...new Set(rows.map(({ date }) => date))]
    return {
      since: new Date(from).toISOString(),
      recipients: sumOf(rows, "recipients"),
      opted_out: sumOf(rows, "opted_out"),
      complaints: sumOf(rows, "complaints"),
      statuses: countsOf(rows),
      days: dates.map((date) => ({ date, statuses: countsOf(rows.filter((row) => row.date === date)) }))
    }
  })
