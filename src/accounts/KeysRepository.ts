import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Page } from "#schemas/core/Page.ts"
import { openersWithout } from "./Administrators.ts"
import { keyOfRow, type KeyRow } from "./KeyDirectory.ts"

export interface NewKeyRow {
  readonly id: string
  readonly user_id: string
  readonly name: string
  readonly kind: "account" | "router"
  readonly prefix: string
  readonly hash: Uint8Array
  readonly models: ReadonlyArray<string> | null
  readonly collections: ReadonlyArray<string> | null
  readonly expires_at: Date | null
  readonly spend_limit_usd: number | null
  readonly rate_limit_per_minute: number | null
}

/** Columns of a row that may change. */
export type KeyRowChange = Partial<
  Pick<
    NewKeyRow,
    "name" | "models" | "collections" | "expires_at" | "spend_limit_usd" | "rate_limit_per_minute"
  >
>

type Row = Record<string, unknown>

/** The outcome of a change: the row; undefined if there is none; "last-key" if no administrator would keep a key. */
export type KeyWritten = KeyRow | undefined | "last-key"

/** `keys` in Postgres. `owner` undefined: all owners. */
export class KeysRepository extends Context.Service<
  KeysRepository,
  {
    /** undefined: the user has as many keys as they may */
    readonly insert: (row: NewKeyRow, limit: number) => Effect.Effect<KeyRow | undefined, SqlError>
    readonly findByHash: (hash: Uint8Array) => Effect.Effect<KeyRow | undefined, SqlError>
    readonly list: (
      userId: string,
      page: Page
    ) => Effect.Effect<{ readonly keys: ReadonlyArray<KeyRow>; readonly total: number }, SqlError>
    readonly update: (
      id: string,
      owner: string | undefined,
      change: KeyRowChange
    ) => Effect.Effect<KeyWritten, SqlError>
    /** which of these ids are no collections of the user */
    readonly unknownCollections: (
      userId: string,
      ids: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlySet<string>, SqlError>
    readonly revoke: (id: string, owner: string | undefined) => Effect.Effect<KeyWritten, SqlError>
  }
>()("signalbox/accounts/KeysRepository") {
  static readonly layer = Layer.effect(
    KeysRepository,
    Effect.map(SqlClient, (sql) => make(sql))
  )
}

const first = (rows: ReadonlyArray<Row>): KeyRow | undefined =>
  rows[0] === undefined ? undefined : keyOfRow(rows[0])

const isOfIn = (sql: SqlClient) => (id: string, owner: string | undefined) =>
  owner === undefined
    ? sql`id = ${id} AND revoked_at IS NULL`
    : sql`id = ${id} AND user_id = ${owner} AND revoked_at IS NULL`

/** The key is looked for first, so that callers learn nothing about others' keys. */
const unlessLast = (
  sql: SqlClient,
  id: string,
  owner: string | undefined,
  write: Effect.Effect<KeyRow | undefined, SqlError>
): Effect.Effect<KeyWritten, SqlError> =>
  sql.withTransaction(
    Effect.gen(function* () {
      const { isOne, others } = yield* openersWithout(sql, id)
      const [known] = yield* sql`SELECT id FROM keys WHERE ${isOfIn(sql)(id, owner)}`
      return known !== undefined && isOne && others === 0 ? ("last-key" as const) : yield* write
    })
  )

const make = (sql: SqlClient): KeysRepository["Service"] => {
  const isOf = isOfIn(sql)
  return {
    insert: (row, limit) =>
      sql.withTransaction(
        Effect.gen(function* () {
          // A concurrent creation for the same user waits here, and counts this one.
          yield* sql`SELECT id FROM users WHERE id = ${row.user_id} FOR NO KEY UPDATE`
          const [there] = yield* sql<{ total: number }>`SELECT count(*)::int AS total FROM keys
            WHERE user_id = ${row.user_id} AND revoked_at IS NULL`
          if ((there?.total ?? 0) >= limit) return undefined
          return first(yield* sql<Row>`INSERT INTO keys ${sql.insert({ ...row })} RETURNING *`)
        })
      ),
    findByHash: (hash) =>
      Effect.map(sql<Row>`SELECT * FROM keys WHERE hash = ${hash} AND revoked_at IS NULL`, first),
    list: (userId, { limit, offset }) =>
      Effect.gen(function* () {
        const rows = yield* sql<Row>`SELECT * FROM keys WHERE user_id = ${userId} AND revoked_at IS NULL
          ORDER BY created_at DESC, id LIMIT ${limit} OFFSET ${offset}`
        const counted = yield* sql<{ total: number }>`SELECT count(*)::int AS total FROM keys
          WHERE user_id = ${userId} AND revoked_at IS NULL`
        return { keys: rows.map(keyOfRow), total: counted[0]?.total ?? 0 }
      }),
    update: (id, owner, change) => {
      if (Object.keys(change).length === 0)
        return Effect.map(sql<Row>`SELECT * FROM keys WHERE ${isOf(id, owner)}`, first)
      const write = Effect.map(
        sql<Row>`UPDATE keys SET ${sql.update({ ...change })} WHERE ${isOf(id, owner)} RETURNING *`,
        first
      )
      // A key with an expiry counts as one that goes.
      return change.expires_at instanceof Date ? unlessLast(sql, id, owner, write) : write
    },
    unknownCollections: (userId, ids) =>
      Effect.map(
        sql<{ id: string }>`SELECT id FROM collections
          WHERE user_id = ${userId} AND deleted_at IS NULL AND ${sql.in("id", ids)}`,
        (rows) => {
          const known = new Set(rows.map(({ id }) => id))
          return new Set(ids.filter((id) => !known.has(id)))
        }
      ),
    revoke: (id, owner) =>
      unlessLast(
        sql,
        id,
        owner,
        Effect.map(sql<Row>`UPDATE keys SET revoked_at = now() WHERE ${isOf(id, owner)} RETURNING *`, first)
      )
  }
}
