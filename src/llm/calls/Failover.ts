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
 * The models of a stage, one after the other until one answers. Outcomes go to the collection's route, which leaves out
 * models that fail too often. Source: contract/llm#trying-the-next-model.
 */
export class StageWalk {
  readonly failures: Array<AttemptFailure> = []
  readonly #route: CollectionRoute | undefined
  readonly #order: ReadonlyArray<CatalogueModel>
  #next = 0

  constructor(models: ReadonlyArray<CatalogueModel>, route: CollectionRoute | undefined) {
    this.#route = route
    this.#order = route?.order(models, performance.now()) ?? models
  }

  /** The model to ask now; undefined after the last one. */
  next(): CatalogueModel | undefined {
    const model = this.#order[this.#next]
    if (model === undefined) return undefined
    this.#next++
    this.#route?.begin(model.id)
    return model
  }

  /** no other model is left after the one that is asked now */
  get isLast(): boolean {
    return this.#next === this.#order.length
  }

  tried(model: CatalogueModel, outcome: Tried<unknown>): void {
    this.#route?.report(model.id, healthOf(outcome), performance.now())
    if (outcome._tag === "Failed") this.failures.push(outcome.failure)
  }
}

/** Walks through a stage with tries that take a fiber; `isLast` marks the last one. */
export const tryInOrder = <A>(
  models: ReadonlyArray<CatalogueModel>,
  route: CollectionRoute | undefined,
  attempt: (model: CatalogueModel, isLast: boolean) => Effect.Effect<Tried<A>>
): Effect.Effect<StageResult<A>> =>
  Effect.gen(function* () {
    const walk = new StageWalk(models, route)
    for (let model = walk.next(); model !== undefined; model = walk.next()) {
      const tried = yield* attempt(model, walk.isLast)
      walk.tried(model, tried)
      if (tried._tag === "Done") return { _tag: "Done", value: tried.value, model }
      if (tried._tag === "ClientGone") return tried
    }
    return { _tag: "AllFailed", failures: walk.failures }
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
