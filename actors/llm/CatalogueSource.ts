import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The upstream has no list, or no usable one; the last known list stays valid. */
export class CatalogueUnavailable extends Schema.TaggedError<CatalogueUnavailable>()("CatalogueUnavailable", {
  problem: Schema.String
}) {
  override get message(): string {
    return `the upstream's list of models: ${this.problem}`
  }
}

/** The source of the list of models. */
export class CatalogueSource extends Context.Service<
  CatalogueSource,
  {
    /** the body of the upstream's `GET /models`, of at most `limits.catalogueBytes` */
    readonly fetch: Effect.Effect<string, CatalogueUnavailable>
  }
>()("signalbox/llm/CatalogueSource") {}
