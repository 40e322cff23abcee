import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { LedgerVerdict } from "#schemas/llm/LedgerApi.ts"

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

type Found = Omit<LedgerVerdict["differences"][number], "windowStart"> & { readonly windowMillis: string }

type SumByReason = LedgerVerdict["losses"][number]

const verify = (sql: SqlClient): Effect.Effect<LedgerVerdict, SqlError> =>
  sql.withTransaction(
    Effect.gen(function* () {
      // Both queries see the same state.
      yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`
      const differences = yield* differencesOf(sql)
      const [sums] = yield* sumsOf(sql)
      if (sums === undefined) return yield* Effect.die(new Error("Postgres answers no sums"))
      return {
        ok: differences.length === 0,
        ...sums,
        losses: yield* lossesOf(sql),
        estimates: yield* estimatesOf(sql),
        differenceCount: differences.length,
        differences: differences.slice(0, shown).map(({ windowMillis, ...difference }) => ({
          ...difference,
          windowStart: windowMillis === "0" ? null : new Date(Number(windowMillis)).toISOString()
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
  sql<Pick<LedgerVerdict, "toppedUp" | "charged" | "loss" | "leased" | "entries">>`SELECT
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
