import { Effect, Layer } from "effect"
import type { CatalogueStatus } from "#actors/llm/CatalogueMirror.ts"
import { type ComponentState, Readiness } from "#src/infra/telemetry/Readiness.ts"
import { Catalogue } from "./Catalogue.ts"

/** A list that is too old is reported and nothing more: its models are still used, at its prices. */
const stateOf = ({ fetchedAt, models, problem }: CatalogueStatus): ComponentState => {
  const served = fetchedAt === undefined ? "no models" : `${models} models of ${fetchedAt.toISOString()}`
  return problem === undefined
    ? { status: "up", detail: served }
    : { status: "degraded", detail: `${served}; the upstream's list is not to be had: ${problem}` }
}

/** The line "catalogue" of `/readyz`. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const { status } = yield* Catalogue
    yield* register(
      "catalogue",
      Effect.sync(() => stateOf(status()))
    )
  })
)
