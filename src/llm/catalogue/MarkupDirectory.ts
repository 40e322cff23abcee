import { Context, Layer, Schema } from "effect"
import { Model } from "effect/schema"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"

/** A row of `markups`: a provider (`id`) with another markup than the default. */
export class MarkupRow extends Model.Class<MarkupRow>("MarkupRow")({
  id: Schema.String,
  percent: Schema.Finite
}) {}

/** The markups that were set, in memory. A change holds everywhere within a second, for calls from then on. */
export class MarkupDirectory extends Context.Service<
  MarkupDirectory,
  CachedTable.CachedTable<typeof MarkupRow>
>()("signalbox/llm/MarkupDirectory") {
  static readonly layer = Layer.effect(
    MarkupDirectory,
    CachedTable.make({
      name: "markups",
      title: "Markup",
      model: MarkupRow,
      ids: "",
      computed: { percent: "percent::float8" },
      indexes: {}
    })
  )
}
