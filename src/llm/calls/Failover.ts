import { Effect } from "effect"
import type { CollectionRoute, Health } from "#actors/llm/CollectionRoutes.ts"
import type { AttemptFailure } from "./AttemptFailure.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import * as CallFault from "./CallFault.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"

/** The outcome of asking one model. */
export type Tried<A> =
  | { readonly _tag: "Done"; readonly value: A; readonly health: Health }
  | { readonly _tag: "Failed"; readonly failure: AttemptFailure }
  | { readonly _tag: "ClientGone" }

/** The outcome of asking the models of a stage, one after the other. */
type StageResult<A> =
  | { readonly _tag: "Done"; readonly value: A; readonly model: CatalogueModel }
  | { readonly _tag: "AllFailed"; readonly failures: ReadonlyArray<AttemptFailure> }
  | { readonly _tag: "ClientGone" }

/**
 * Asks the models in order until one answers; `isLast` marks the last one. A failure moves on to the next one and goes
 * to the collection's route, which leaves out models that fail too often. Source: contract/llm#trying-the-next-model.
 */
export const tryInOrder = <A>(
  models: ReadonlyArray<CatalogueModel>,
  route: CollectionRoute | undefined,
  attempt: (model: CatalogueModel, isLast: boolean) => Effect.Effect<Tried<A>>
): Effect.Effect<StageResult<A>> =>
  Effect.gen(function* () {
    const failures: Array<AttemptFailure> = []
    const order = route?.order(models, performance.now()) ?? models
    for (const [index, model] of order.entries()) {
      route?.begin(model.id)
      const tried = yield* attempt(model, index === order.length - 1)
      route?.report(model.id, healthOf(tried), performance.now())
      if (tried._tag === "Done") return { _tag: "Done", value: tried.value, model }
      if (tried._tag === "ClientGone") return tried
      failures.push(tried.failure)
    }
    return { _tag: "AllFailed", failures }
  })

const healthOf = <A>(tried: Tried<A>): Health => {
  if (tried._tag === "Done") return tried.health
  return tried._tag === "ClientGone" ? "moot" : healthAfter(tried.failure)
}

/** The health of a member after a failure. */
export const healthAfter = ({ kind, retryAfterSeconds }: AttemptFailure): Health => {
  if (kind === "request") return "moot"
  return kind === "upstream"
    ? "failed"
    : { limitedMillis: retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000 }
}

/** The error for the caller when every model failed. Source: contract/llm#trying-the-next-model. */
export const faultOf = (failures: ReadonlyArray<AttemptFailure>): Problem => {
  const [first] = failures
  if (first === undefined) return CallFault.upstreamError("No model was asked")
  if (failures.every(({ kind }) => kind === "request"))
    return first.isModerated === true
      ? CallFault.refusedByModeration(first.message, first.code)
      : CallFault.refusedByModel(first.message, first.code)
  if (failures.every(({ kind }) => kind === "rate_limited")) {
    const waits = failures
      .map(({ retryAfterSeconds }) => retryAfterSeconds)
      .filter((wait) => wait !== undefined)
    return CallFault.rateLimited(
      first.message,
      waits.length === 0 ? undefined : Math.max(1, Math.min(...waits))
    )
  }
  const telling = failures.find(({ kind }) => kind === "upstream") ?? first
  return CallFault.upstreamError(telling.message)
}
