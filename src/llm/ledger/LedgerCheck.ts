import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** A number of a limit that differs from the entries. */
export interface LedgerDifference {
  readonly limit: string
  /** null for limits without windows */
  readonly windowStart: Date | null
  readonly what: "settled" | "cap" | "leased"
  /** by the entries, the keys, the plans, the leases; null: not known there */
  readonly expected: string | null
  /** in the limit's row; null: no row, or no cap */
  readonly found: string | null
}

/** Sums in pico-USD as decimal text. */
export interface LedgerSums {
  readonly toppedUp: string
  readonly charged: string
  readonly loss: string
  /** the parts of the losses, by reason */
  readonly losses: ReadonlyArray<SumByReason>
  /** the estimated part of charges and losses, where the upstream did not report its cost, by reason */
  readonly estimates: ReadonlyArray<SumByReason>
  /** of credits, by processes */
  readonly leased: string
  readonly entries: string
}

export interface SumByReason {
  readonly reason: string
  readonly calls: string
  /** pico-USD */
  readonly amount: string
}

export interface LedgerVerdict extends LedgerSums {
  /** the first hundred */
  readonly differences: ReadonlyArray<LedgerDifference>
  readonly differenceCount: number
}

/** Holds every balance, cap, allowance and lease against the entries. */
export class LedgerCheck extends Context.Service<
  LedgerCheck,
  { readonly verify: Effect.Effect<LedgerVerdict, SqlError> }
>()("signalbox/llm/LedgerCheck") {
  static readonly layer = Layer.effect(
    LedgerCheck,
    Effect.map(SqlClient, (sql) => ({ verify: verify(sql) }))
  )
}

const shown = 100

interface Found extends Omit<LedgerDifference, "windowStart"> {
  readonly windowMillis: string
}

const verify = (sql: SqlClient): Effect.Effect<LedgerVerdict, SqlError> =>
  sql.withTransaction(
    Effect.gen(function* () {
      // Both queries see the same state.
      yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`
      const differences = yield* differencesOf(sql)
      const [sums] = yield* sumsOf(sql)
      if (sums === undefined) return yield* Effect.die(new Error("Postgres answers no sums"))
      return {
        ...sums,
        losses: yield* lossesOf(sql),
        estimates: yield* estimatesOf(sql),
        differenceCount: differences.length,
        differences: differences.slice(0, shown).map(({ windowMillis, ...difference }) => ({
          ...difference,
          windowStart: windowMillis === "0" ? null : new Date(Number(windowMillis))
        }))
      }
    })
  )

const lossesOf = (sql: SqlClient) =>
  sql<SumByReason>`SELECT CASE kind WHEN 'loss' THEN 'unknown' ELSE substr(kind, 6) END AS reason,
      count(*)::text AS calls, sum(amount)::text AS amount
    FROM entries WHERE kind LIKE 'loss%' GROUP BY kind ORDER BY kind`

const estimatesOf = (sql: SqlClient) =>
  sql<SumByReason>`SELECT reason, count(DISTINCT request_id)::text AS calls, sum(amount)::text AS amount
    FROM cost_estimates GROUP BY reason ORDER BY reason`

const sumsOf = (sql: SqlClient) =>
  sql<Omit<LedgerSums, "losses" | "estimates">>`SELECT
    coalesce(sum(amount) FILTER (WHERE kind = 'topup'), 0)::text AS "toppedUp",
    coalesce(sum(amount) FILTER (WHERE kind = 'charge'), 0)::text AS charged,
    coalesce(sum(amount) FILTER (WHERE kind LIKE 'loss%'), 0)::text AS loss,
    (SELECT coalesce(sum(amount), 0)::text FROM leases WHERE limit_id LIKE 'credits:%') AS leased,
    count(*)::text AS entries FROM entries`

const differencesOf = (sql: SqlClient) => sql<Found>`
  WITH settled AS (
    SELECT debit AS id, 'epoch'::timestamptz AS window_start, sum(amount) AS amount FROM entries
      WHERE kind = 'charge' GROUP BY debit
    UNION ALL
    SELECT 'key:' || key_id, 'epoch', sum(amount) FROM entries WHERE kind = 'charge' GROUP BY key_id
    UNION ALL
    SELECT debit, 'epoch', sum(amount) FROM entries WHERE kind LIKE 'loss%' GROUP BY debit
    UNION ALL
    SELECT debit, window_start, sum(amount) FROM entries WHERE kind LIKE 'allowance:%' GROUP BY debit, window_start),
  cap AS (
    SELECT credit AS id, 'epoch'::timestamptz AS window_start, sum(amount) AS amount FROM entries
      WHERE kind = 'topup' GROUP BY credit
    UNION ALL
    SELECT 'key:' || id, 'epoch', round(spend_limit_usd * 1e12) FROM keys
    UNION ALL
    SELECT l.id, l.window_start, CASE split_part(l.id, ':', 3)
        WHEN 'hour' THEN p.hour_tokens WHEN 'day' THEN p.day_tokens ELSE p.week_tokens END
      FROM limits l JOIN subscriptions s ON s.id = split_part(l.id, ':', 2) JOIN plans p ON p.id = s.plan_id
      WHERE l.kind = 'allowance'),
  leased AS (
    SELECT limit_id AS id, window_start, sum(amount) AS amount FROM leases GROUP BY limit_id, window_start),
  expected AS (
    SELECT 'settled' AS what, * FROM settled UNION ALL
    SELECT 'cap', * FROM cap UNION ALL
    SELECT 'leased', * FROM leased),
  found AS (
    SELECT 'settled' AS what, id, window_start, settled AS amount FROM limits UNION ALL
    SELECT 'cap', id, window_start, cap FROM limits UNION ALL
    SELECT 'leased', id, window_start, leased FROM limits)
  SELECT what, id AS limit, round(extract(epoch FROM window_start) * 1000)::text AS "windowMillis",
    e.amount::text AS expected, f.amount::text AS found
  FROM expected e FULL JOIN found f USING (what, id, window_start)
  WHERE CASE WHEN what = 'cap' THEN e.amount IS DISTINCT FROM f.amount
             ELSE coalesce(e.amount, 0) <> coalesce(f.amount, 0) END
  ORDER BY id, window_start, what`
