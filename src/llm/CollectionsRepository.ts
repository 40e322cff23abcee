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

/** What may change of a row, by column. */
export type CollectionRowChange = Partial<Pick<NewCollectionRow, "name" | "slug" | "auto_route" | "models">>

type Row = Record<string, unknown>

/** `collections` in Postgres. `owner` undefined: whosever the collection is. */
export class CollectionsRepository extends Context.Service<
  CollectionsRepository,
  {
    readonly insert: (row: NewCollectionRow) => Effect.Effect<CollectionRow, SqlError>
    readonly update: (
      id: string,
      owner: string | undefined,
      change: CollectionRowChange
    ) => Effect.Effect<CollectionRow | undefined, SqlError>
    readonly markDeleted: (
      id: string,
      owner: string | undefined
    ) => Effect.Effect<CollectionRow | undefined, SqlError>
    /** what a user has, from the table itself */
    readonly countOf: (userId: string) => Effect.Effect<number, SqlError>
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
    insert: (row) =>
      Effect.map(sql<Row>`INSERT INTO collections ${sql.insert({ ...row })} RETURNING *`, (rows) =>
        collectionOfRow(rows[0] ?? {})
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
      ),
    countOf: (userId) =>
      Effect.map(
        sql<{ total: number }>`SELECT count(*)::int AS total FROM collections
          WHERE user_id = ${userId} AND deleted_at IS NULL`,
        (rows) => rows[0]?.total ?? 0
      )
  }
}
