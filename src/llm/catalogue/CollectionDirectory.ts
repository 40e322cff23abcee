import { Context, Layer, Schema } from "effect"
import * as Mirror from "#src/infra/postgres/Mirror.ts"

/** A row of `collections`. */
export interface CollectionRow {
  readonly id: string
  readonly userId: string
  readonly name: string
  /** unique among those of its owner */
  readonly slug: string
  readonly autoRoute: boolean
  /** ids, in the order in which they are tried */
  readonly models: ReadonlyArray<string>
  readonly createdAt: Date
  readonly deletedAt: Date | null
}

const decodeColumns = Schema.decodeUnknownSync(
  Schema.Struct({
    id: Schema.String,
    user_id: Schema.String,
    name: Schema.String,
    slug: Schema.String,
    auto_route: Schema.Boolean,
    models: Schema.Array(Schema.String),
    created_at: Schema.Date,
    deleted_at: Schema.NullOr(Schema.Date)
  })
)

/** A collection from a row as Postgres gives it. Throws where the row is not one of `collections`. */
export const collectionOfRow = (row: Readonly<Record<string, unknown>>): CollectionRow => {
  const columns = decodeColumns(row)
  return {
    id: columns.id,
    userId: columns.user_id,
    name: columns.name,
    slug: columns.slug,
    autoRoute: columns.auto_route,
    models: columns.models,
    createdAt: columns.created_at,
    deletedAt: columns.deleted_at
  }
}

/** The key of the index "slug". */
export const slugKey = (userId: string, slug: string): string => `${userId}/${slug}`

/** All collections in memory: a completion needs no query for its collection. A change holds everywhere within 1 s. */
export class CollectionDirectory extends Context.Service<
  CollectionDirectory,
  Mirror.Mirror<CollectionRow, "slug">
>()("signalbox/llm/CollectionDirectory") {
  static readonly layer = Layer.effect(
    CollectionDirectory,
    Mirror.make({
      table: "collections",
      decode: collectionOfRow,
      indexes: { slug: ({ slug, userId }) => slugKey(userId, slug) },
      isGone: (collection) => collection.deletedAt !== null
    })
  )
}
