import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The store of copies cannot be asked. */
export class CopiesUnavailable extends Schema.TaggedError<CopiesUnavailable>()("CopiesUnavailable", {
  problem: Schema.String
}) {}

/** A list of models as the upstream sent it. */
export interface CatalogueCopy {
  readonly body: string
  readonly fetchedAt: Date
}

/** The store of each upstream's last good list, one copy each, for restarts and for other processes. */
export class CatalogueCopies extends Context.Service<
  CatalogueCopies,
  {
    /** the copy that is kept, if it is newer than `than` (undefined: in any case) */
    readonly newerThan: (
      than: Date | undefined
    ) => Effect.Effect<CatalogueCopy | undefined, CopiesUnavailable>
    /** a newer copy stays */
    readonly keep: (copy: CatalogueCopy) => Effect.Effect<void, CopiesUnavailable>
  }
>()("signalbox/llm/CatalogueCopies") {}
