import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Page } from "#schemas/core/Page.ts"
import { type NewTopUp, TopUp } from "#schemas/llm/Credits.ts"
import { picoOfNumber, usdOf } from "#schemas/llm/Money.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { creditsOf } from "./Payment.ts"

/** A request with the same Idempotency-Key is being served. */
export class TopUpInFlight extends Schema.TaggedError<TopUpInFlight>()("TopUpInFlight", {}) {}

/** The Idempotency-Key was used for another request. */
export class TopUpDiffers extends Schema.TaggedError<TopUpDiffers>()("TopUpDiffers", {}) {}

/** Credits that administrators add. */
export class TopUps extends Context.Service<
  TopUps,
  {
    /** `idempotencyKey` is the caller's own: others may use the same one. */
    readonly add: (
      callerId: string,
      topUp: NewTopUp,
      idempotencyKey: string | undefined
    ) => Effect.Effect<TopUp, TopUpInFlight | TopUpDiffers | SqlError>
    readonly list: (
      userId: string,
      page: Page
    ) => Effect.Effect<{ readonly topUps: ReadonlyArray<TopUp>; readonly total: number }, SqlError>
  }
>()("signalbox/llm/TopUps") {
  static readonly layer = Layer.effect(
    TopUps,
    Effect.map(SqlClient, (sql) => ({ add: add(sql), list: list(sql) }))
  )
}

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

const hoursRemembered = 24

/** The lock is the transaction's: a request that dies with its process leaves nothing in flight. */
const once = Effect.fnUntraced(function* (
  sql: SqlClient,
  callerId: string,
  topUp: NewTopUp,
  key: string
): Effect.fn.Return<TopUp, TopUpInFlight | TopUpDiffers | SqlError> {
  const [lock] = yield* sql<{ taken: boolean }>`
    SELECT pg_try_advisory_xact_lock(hashtextextended(${`top-up ${callerId} ${key}`}, 0)) AS taken`
  if (lock?.taken !== true) return yield* new TopUpInFlight({})
  yield* sql`DELETE FROM top_up_answers
    WHERE created_at < clock_timestamp() - ${hoursRemembered} * interval '1 hour'`
  const body = JSON.stringify([topUp.user_id, topUp.amount_usd, topUp.note ?? null])
  const [known] = yield* sql<{ body: string; answer: string }>`
    SELECT body, answer::text FROM top_up_answers WHERE user_id = ${callerId} AND key = ${key}`
  if (known !== undefined) {
    if (known.body !== body) return yield* new TopUpDiffers({})
    return yield* Effect.orDie(Schema.decodeEffect(Schema.fromJsonString(TopUp))(known.answer))
  }
  const answer = yield* book(sql, topUp)
  yield* sql`INSERT INTO top_up_answers (user_id, key, body, answer)
    VALUES (${callerId}, ${key}, ${body}, ${JSON.stringify(answer)}::text::jsonb)`
  return answer
})

const add =
  (sql: SqlClient): TopUps["Service"]["add"] =>
  (callerId, topUp, key) =>
    sql.withTransaction(key === undefined ? book(sql, topUp) : once(sql, callerId, topUp, key))

const list =
  (sql: SqlClient): TopUps["Service"]["list"] =>
  (userId, { limit, offset }) =>
    Effect.gen(function* () {
      const rows = yield* sql<Row>`SELECT request_id, user_id, amount::text, note, created_at FROM entries
        WHERE user_id = ${userId} AND kind = 'topup' ORDER BY id DESC LIMIT ${limit} OFFSET ${offset}`
      const counted = yield* sql<{ total: number }>`SELECT count(*)::int AS total FROM entries
        WHERE user_id = ${userId} AND kind = 'topup'`
      return { topUps: rows.map(resourceOf), total: counted[0]?.total ?? 0 }
    })
