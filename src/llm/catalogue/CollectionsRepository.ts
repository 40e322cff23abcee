import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { collectionOfRow, type CollectionRow } from "./CollectionDirectory.ts"

export interface NewCollectionRow {
  readonly id: string
  readonly user_id: string
  readonly name: string
  readonly slug: string
  readonly auto_route: boolean
  readonly models: ReadonlyArray<string>
}

/** Columns of a row that may change. */
export type CollectionRowChange = Partial<Pick<NewCollectionRow, "name" | "slug" | "auto_route" | "models">>

type Row = Record<string, unknown>

/** `collections` in Postgres. `owner` undefined: all owners. */
export class CollectionsRepository extends Context.Service<
  CollectionsRepository,
  {
    /** undefined: the owner has `limit` of them already, even with concurrent creations */
    readonly insert: (
      row: NewCollectionRow,
      limit: number
    ) => Effect.Effect<CollectionRow | undefined, SqlError>
    readonly update: (
      id: string,
      owner: string | undefined,
      change: CollectionRowChange
    ) => Effect.Effect<CollectionRow | undefined, SqlError>
    readonly markDeleted: (
      id: string,
      owner: string | undefined
    ) => Effect.Effect<CollectionRow | undefined, SqlError>
  }
>()("signalbox/llm/CollectionsRepository") {
  static readonly layer = Layer.effect(
    CollectionsRepository,
    Effect.map(SqlClient, (sql) => make(sql))
  )
}

const first = (rows: ReadonlyArray<Row>): CollectionRow | undefined =>
  rows[0] === undefined ? undefined : collectionOfRow(rows[0])

const make = (sql: SqlClient): CollectionsRepository["Service"] => {
  const isOf = (id: string, owner: string | undefined) =>
    owner === undefined
      ? sql`id = ${id} AND deleted_at IS NULL`
      : sql`id = ${id} AND user_id = ${owner} AND deleted_at IS NULL`
  return {
    insert: (row, limit) =>
      sql.withTransaction(
        Effect.gen(function* () {
          // A concurrent creation for the same user waits here, and counts this one.
          yield* sql`SELECT id FROM users WHERE id = ${row.user_id} FOR NO KEY UPDATE`
          const [there] = yield* sql<{ total: number }>`SELECT count(*)::int AS total FROM collections
            WHERE user_id = ${row.user_id} AND deleted_at IS NULL`
          if ((there?.total ?? 0) >= limit) return undefined
          return first(yield* sql<Row>`INSERT INTO collections ${sql.insert({ ...row })} RETURNING *`)
        })
      ),
    update: (id, owner, change) =>
      Object.keys(change).length === 0
        ? Effect.map(sql<Row>`SELECT * FROM collections WHERE ${isOf(id, owner)}`, first)
        : Effect.map(
            sql<Row>`UPDATE collections SET ${sql.update({ ...change })} WHERE ${isOf(id, owner)} RETURNING *`,
            first
          ),
    markDeleted: (id, owner) =>
      Effect.map(
        sql<Row>`UPDATE collections SET deleted_at = now() WHERE ${isOf(id, owner)} RETURNING *`,
        first
      )
  }
}
