import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** pg_advisory_xact_lock: removals of administrators and of their keys happen one after the other. */
const administratorsLock = 0x5b_0001

/** The keys that open the administration: account keys of administrators, with every right, that work at this moment. */
interface Openers {
  /** whether `without` is one of them, or has one */
  readonly isOne: boolean
  /** how many are left without it */
  readonly others: number
}

/**
 * In a transaction: counts the keys that open the administration without a user or a key; other transactions cannot
 * change the count until this one ends.
 * @param without the id of a user or of a key
 */
export const openersWithout = (sql: SqlClient, without: string): Effect.Effect<Openers, SqlError> =>
  Effect.gen(function* () {
    yield* sql`SELECT pg_advisory_xact_lock(${administratorsLock})`
    const [row] = yield* sql<{ own: number; others: number }>`
      SELECT count(*) FILTER (WHERE ${without} IN (k.id, u.id))::int AS own,
        count(*) FILTER (WHERE ${without} NOT IN (k.id, u.id))::int AS others
      FROM keys k JOIN users u ON u.id = k.user_id
      WHERE u.role = 'admin' AND u.deleted_at IS NULL AND k.kind = 'account' AND 'full' = ANY (k.scopes)
        AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())`
    return { isOne: (row?.own ?? 0) > 0, others: row?.others ?? 0 }
  })

/** Whether this secret opens the administration, by its hash. */
export const opens = (sql: SqlClient, hash: Uint8Array): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql`SELECT k.id FROM keys k JOIN users u ON u.id = k.user_id
      WHERE k.hash = ${hash} AND u.role = 'admin' AND u.deleted_at IS NULL AND k.kind = 'account'
        AND 'full' = ANY (k.scopes) AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())`,
    (rows) => rows.length > 0
  )
