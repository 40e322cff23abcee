import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Page } from "#schemas/core/Page.ts"
import type { NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { InboxMail } from "#schemas/mail/Email.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import * as DeliveryRecords from "../delivery/DeliveryRecords.ts"

interface Row extends Omit<InboxMail, "from" | "received_at"> {
  readonly from_address: string
  readonly received_at: Date
}

interface Copy extends Pick<DeliveryRecords.DeliveryRow, "bytes" | "sha256" | "size"> {
  readonly head: Uint8Array
}

/** Mail that the sandbox took. Source: contract/mail#sandbox. */
export class Inbox extends Context.Service<
  Inbox,
  {
    readonly list: (
      owner: string,
      page: Page
    ) => Effect.Effect<
      {
        readonly emails: ReadonlyArray<InboxMail>
        readonly meta: { readonly limit: number; readonly offset: number; readonly total: number }
      },
      SqlError
    >
    /** a recipient's copy */
    readonly read: (
      owner: string,
      id: string
    ) => Effect.Effect<Buffer, NotFound | ServiceUnavailable | SqlError>
    /** Answers how many there were. */
    readonly clear: (owner: string) => Effect.Effect<number, SqlError>
  }
>()("signalbox/mail/Inbox") {
  static readonly layer = Layer.effect(
    Inbox,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { messageOf } = yield* DeliveryRecords.make
      return Inbox.of({
        list: Effect.fnUntraced(function* (owner: string, page: Page) {
          const rows =
            yield* sql<Row>`SELECT i.delivery_id AS id, i.message_id AS email_id, i.address, m.from_address,
              m.subject, i.received_at
            FROM mail_inbox i JOIN mail_messages m ON m.id = i.message_id
            WHERE i.user_id = ${owner} ORDER BY i.seq DESC LIMIT ${page.limit} OFFSET ${page.offset}`
          const [count] = yield* sql<{ total: number }>`
            SELECT count(*)::int AS total FROM mail_inbox WHERE user_id = ${owner}`
          const emails = rows.map(({ from_address, received_at, ...row }) => ({
            ...row,
            from: from_address,
            received_at: received_at.toISOString()
          }))
          return { emails, meta: { ...page, total: count?.total ?? 0 } }
        }),
        read: Effect.fnUntraced(function* (owner: string, id: string) {
          const [row] = yield* sql<Copy>`SELECT i.head, m.bytes, encode(m.sha256, 'hex') AS sha256, m.size
            FROM mail_inbox i JOIN mail_messages m ON m.id = i.message_id
            WHERE i.delivery_id = ${id} AND i.user_id = ${owner}`
          const bytes = row && (yield* messageOf(row))
          return row === undefined || bytes === undefined
            ? yield* notFound("Mail")
            : Buffer.concat([row.head, bytes])
        }),
        clear: (owner) =>
          Effect.map(sql`DELETE FROM mail_inbox WHERE user_id = ${owner} RETURNING 1`, (rows) => rows.length)
      })
    })
  )
}
