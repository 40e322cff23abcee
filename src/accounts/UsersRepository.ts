import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Page } from "#schemas/core/Page.ts"
import { openersWithout } from "./Administrators.ts"
import { userOfRow, type UserRow } from "./UserDirectory.ts"

export interface NewUserRow {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly role: "user" | "admin"
}

/** Columns of a row that may change. */
export type UserRowChange = Partial<Omit<NewUserRow, "id">> & { readonly email_verified?: Date | null }

type Row = Record<string, unknown>

/**
 * The outcome of a change: the row; undefined if there is none; the reason if it would leave no administrator, or none
 * with a key.
 */
export type UserWritten = UserRow | undefined | "last-admin" | "last-admin-key"

/** `users` in Postgres. */
export class UsersRepository extends Context.Service<
  UsersRepository,
  {
    readonly insert: (row: NewUserRow) => Effect.Effect<UserRow, SqlError>
    readonly list: (
      page: Page
    ) => Effect.Effect<{ readonly users: ReadonlyArray<UserRow>; readonly total: number }, SqlError>
    readonly update: (id: string, change: UserRowChange) => Effect.Effect<UserWritten, SqlError>
    /** marks the user, their keys and their sites as gone */
    readonly markDeleted: (id: string) => Effect.Effect<UserWritten, SqlError>
  }
>()("signalbox/accounts/UsersRepository") {
  static readonly layer = Layer.effect(
    UsersRepository,
    Effect.map(SqlClient, (sql) => make(sql))
  )
}

const make = (sql: SqlClient): UsersRepository["Service"] => {
  /** The reason why an administrator has to stay one; undefined if another has a key that works. */
  const isNeeded = (id: string): Effect.Effect<"last-admin" | "last-admin-key" | undefined, SqlError> =>
    Effect.gen(function* () {
      const { others: keys } = yield* openersWithout(sql, id)
      const [row] = yield* sql<{ others: number; role: string }>`
        SELECT role, (SELECT count(*)::int FROM users WHERE role = 'admin' AND deleted_at IS NULL AND id <> ${id})
          AS others FROM users WHERE id = ${id} AND deleted_at IS NULL`
      if (row?.role !== "admin" || keys > 0) return undefined
      return row.others === 0 ? "last-admin" : "last-admin-key"
    })
  const first = (rows: ReadonlyArray<Row>): UserRow | undefined =>
    rows[0] === undefined ? undefined : userOfRow(rows[0])

  return {
    insert: (row) =>
      Effect.map(sql<Row>`INSERT INTO users ${sql.insert({ ...row })} RETURNING *`, (rows) =>
        userOfRow(rows[0] ?? {})
      ),
    list: ({ limit, offset }) =>
      Effect.gen(function* () {
        const rows = yield* sql<Row>`SELECT * FROM users WHERE deleted_at IS NULL
          ORDER BY created_at, id LIMIT ${limit} OFFSET ${offset}`
        const counted = yield* sql<{
          total: number
        }>`SELECT count(*)::int AS total FROM users WHERE deleted_at IS NULL`
        return { users: rows.map(userOfRow), total: counted[0]?.total ?? 0 }
      }),
    update: (id, change) =>
      Effect.gen(function* () {
        const needed = change.role === "user" ? yield* isNeeded(id) : undefined
        if (needed !== undefined) return needed
        const columns = Object.keys(change).length === 0 ? { id } : { ...change }
        return first(
          yield* sql<Row>`UPDATE users SET ${sql.update(columns)} WHERE id = ${id} AND deleted_at IS NULL RETURNING *`
        )
      }).pipe(sql.withTransaction),
    markDeleted: (id) =>
      Effect.gen(function* () {
        const needed = yield* isNeeded(id)
        if (needed !== undefined) return needed
        yield* sql`UPDATE keys SET revoked_at = now() WHERE user_id = ${id} AND revoked_at IS NULL`
        yield* sql`UPDATE sites SET deleted_at = now() WHERE user_id = ${id} AND deleted_at IS NULL`
        return first(
          yield* sql<Row>`UPDATE users SET deleted_at = now() WHERE id = ${id} AND deleted_at IS NULL RETURNING *`
        )
      }).pipe(sql.withTransaction)
  }
}
