import { Context, Layer } from "effect"
import { CollectionRow } from "#schemas/llm/Collection.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"

/** The key of the index "slug". */
export const slugKey = (userId: string, slug: string): string => `${userId}/${slug}`

/** All collections in memory: a completion needs no query for its collection. A change holds everywhere within 1 s. */
export class CollectionDirectory extends Context.Service<
  CollectionDirectory,
  CachedTable.CachedTable<typeof CollectionRow, "slug">
>()("signalbox/llm/CollectionDirectory") {
  static readonly layer = Layer.effect(
    CollectionDirectory,
    CachedTable.make({
      name: "collections",
      title: "Collection",
      model: CollectionRow,
      ids: "col",
      indexes: { slug: ({ slug, user_id }) => slugKey(user_id, slug) },
      gone: "deleted_at"
    })
  )
}
