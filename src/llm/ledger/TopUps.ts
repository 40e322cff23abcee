import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Page } from "#schemas/core/Page.ts"
import type { Conflict } from "#schemas/core/Problem.ts"
import { type NewTopUp, TopUp } from "#schemas/llm/Credits.ts"
import { picoOfNumber, usdOf } from "#schemas/llm/Money.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Idempotency } from "#src/infra/postgres/Idempotency.ts"
import { creditsOf } from "./Payment.ts"

interface Row {
  readonly request_id: string
  readonly user_id: string
  readonly amount: string
  readonly note: string | null
  readonly created_at: Date
}

const resourceOf = ({ amount, created_at, note, request_id, user_id }: Row): TopUp => ({
  id: request_id,
  user_id,
  amount_usd: usdOf(BigInt(amount)),
  note,
  created_at: created_at.toISOString()
})

const book = Effect.fnUntraced(function* (sql: SqlClient, { amount_usd, note, user_id }: NewTopUp) {
  const amount = String(picoOfNumber(amount_usd) ?? 0n)
  const limit = creditsOf(user_id)
  const rows =
    yield* sql<Row>`INSERT INTO entries (request_id, kind, debit, credit, amount, unit, user_id, note)
    VALUES (${newId("top")}, 'topup', 'cash', ${limit}, ${amount}::text::numeric, 'pico-usd', ${user_id}, ${note ?? null})
    RETURNING request_id, user_id, amount::text, note, created_at`
  yield* sql`INSERT INTO limits AS l (id, kind, cap) VALUES (${limit}, 'credits', ${amount}::text::numeric)
    ON CONFLICT (id, window_start) DO UPDATE SET cap = l.cap + excluded.cap`
  // Calls that wait for credits anywhere ask again.
  yield* sql`SELECT pg_notify('ledger', ${`returned - ${user_id}`})`
  return yield* Effect.fromNullishOr(rows[0]).pipe(Effect.map(resourceOf), Effect.orDie)
})

/** Credits that administrators add. */
export const makeTopUps = Effect.gen(function* () {
  const sql = yield* SqlClient
  const idempotency = yield* Idempotency
  return {
    /** `key` is the caller's own for idempotency: others may use the same one. */
    add: (
      callerId: string,
      topUp: NewTopUp,
      key: string | undefined
    ): Effect.Effect<TopUp, Conflict | SqlError> => {
      if (key === undefined) return sql.withTransaction(book(sql, topUp))
      const request = [JSON.stringify([topUp.user_id, topUp.amount_usd, topUp.note ?? null])]
      const once = { scope: `top-up:${callerId}`, userId: callerId, key, request }
      return idempotency.inTransaction(once, TopUp, book(sql, topUp))
    },
    list: Effect.fnUntraced(function* (userId: string, { limit, offset }: Page) {
      const rows = yield* sql<Row>`SELECT request_id, user_id, amount::text, note, created_at FROM entries
        WHERE user_id = ${userId} AND kind = 'topup' ORDER BY id DESC LIMIT ${limit} OFFSET ${offset}`
      const counted = yield* sql<{ total: number }>`SELECT count(*)::int AS total FROM entries
        WHERE user_id = ${userId} AND kind = 'topup'`
      return { topUps: rows.map(resourceOf), total: counted[0]?.total ?? 0 }
    })
  }
})
