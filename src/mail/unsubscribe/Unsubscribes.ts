import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { Suppressions } from "../suppressions/Suppressions.ts"
import { forwards } from "./Forwards.ts"
import { UnsubscribeTokens } from "./UnsubscribeTokens.ts"

/** The recipient whose link it is. */
export interface LinkedRecipient {
  readonly address: string
  /** of the message */
  readonly from: string
  /** the sender's own address for it */
  readonly url: string | null
  /** Bulk mail of this sender does not come here. */
  readonly hasOptedOut: boolean
}

interface Row {
  readonly user_id: string
  readonly address: string
  readonly from: string
  readonly url: string | null
}

/** Recipients who want no more bulk mail of a sender's. Source: contract/mail#unsubscribe-links, RFC 8058. */
export class Unsubscribes extends Context.Service<
  Unsubscribes,
  {
    /** Changes nothing. undefined: no delivery has this token, or none any more */
    readonly find: (token: string) => Effect.Effect<LinkedRecipient | undefined, SqlError>
    /** Suppresses the address at once, and has the sender told, the first time. */
    readonly optOut: (token: string) => Effect.Effect<LinkedRecipient | undefined, SqlError>
  }
>()("signalbox/mail/Unsubscribes") {
  static readonly layer = Layer.effect(
    Unsubscribes,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const tokens = yield* UnsubscribeTokens
      const suppressions = yield* Suppressions
      const jobs = yield* Jobs

      const read = Effect.fnUntraced(function* (id: string) {
        const [row] =
          yield* sql<Row>`SELECT d.user_id, d.address, m.from_address AS from, m.unsubscribe_url AS url
          FROM mail_deliveries d JOIN mail_messages m ON m.id = d.message_id WHERE d.id = ${id}`
        return row
      })
      const write = Effect.fnUntraced(function* (id: string, { address, url, user_id: owner }: Row) {
        const [first] = yield* sql`UPDATE mail_deliveries SET opted_out_at = now()
          WHERE id = ${id} AND opted_out_at IS NULL RETURNING id`
        // The owner may have removed it since the first time.
        yield* suppressions.suppress(owner, address, "unsubscribe")
        if (first !== undefined && url !== null)
          yield* jobs.offer(forwards, [{ lane: id, id, payload: { delivery: id } }])
      }, sql.withTransaction)

      return Unsubscribes.of({
        find: Effect.fn("Unsubscribes.find")(function* (token) {
          const id = tokens.deliveryOf(token)
          const row = id === undefined ? undefined : yield* read(id)
          if (row === undefined) return undefined
          const { address, from, url, user_id: owner } = row
          const suppressed = yield* suppressions.of(owner, [address], true)
          return { address, from, url, hasOptedOut: suppressed.size > 0 }
        }),
        optOut: Effect.fn("Unsubscribes.optOut")(function* (token) {
          const id = tokens.deliveryOf(token)
          const row = id === undefined ? undefined : yield* read(id)
          if (id === undefined || row === undefined) return undefined
          yield* write(id, row)
          return { address: row.address, from: row.from, url: row.url, hasOptedOut: true }
        })
      })
    })
  )
}
