/**
 * State: of one collection, the circuit breaker of each member that was asked. One actor per collection.
 * Messages: none; a call asks `order` and reports the outcome of each try, synchronously.
 * Limits: `maxResidentActors` collections in memory and `membersMax` breakers each; idle ones are passivated.
 * Restart policy: the kernel's; there is no fiber in it that could crash.
 * In a crash, or when it has been idle, its members' health is forgotten: they are asked again.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ActorUnavailable } from "../kernel/ActorError.ts"
import * as Supervisor from "../kernel/Supervisor.ts"
import { Breaker, type BreakerOptions } from "../kernel/Breaker.ts"

/** The outcome of asking a member. "moot" says nothing about it: the client left, or the request was at fault. */
export type Health = "succeeded" | "failed" | "moot" | { readonly limitedMillis: number | undefined }

/** The health of one collection's members. Times are monotonic milliseconds. */
export class CollectionRoute {
  readonly #breakers = new Map<string, Breaker>()
  readonly #options: BreakerOptions
  readonly #membersMax: number

  constructor(options: BreakerOptions, membersMax: number) {
    this.#options = options
    this.#membersMax = membersMax
  }

  /**
   * The members to ask, in their order: all but those whose breaker is open. Where all are open, the one whose turn
   * comes soonest is asked all the same: a true error says more than a refusal, and a recovery is found at once.
   */
  order<M extends { readonly id: string }>(members: ReadonlyArray<M>, now: number): ReadonlyArray<M> {
    const open = members.filter(({ id }) => this.#breakers.get(id)?.state(now) !== "open")
    if (open.length > 0) return open
    const soonest = members.reduce<M | undefined>(
      (best, member) =>
        best === undefined || this.#openUntil(member.id) < this.#openUntil(best.id) ? member : best,
      undefined
    )
    return soonest === undefined ? [] : [soonest]
  }

  begin(id: string): void {
    this.#breakers.get(id)?.begin()
  }

  report(id: string, health: Health, now: number): void {
    const breaker = this.#breakers.get(id)
    if (health === "succeeded") return breaker?.succeed()
    if (health === "moot") return breaker?.withdraw()
    const known = breaker ?? this.#make(id)
    if (health === "failed") known.fail(now)
    else known.limit(now, health.limitedMillis)
  }

  #openUntil(id: string): number {
    return this.#breakers.get(id)?.openUntil ?? 0
  }

  /** Members that were taken out of the collection leave their breakers behind: the oldest goes. */
  #make(id: string): Breaker {
    const [oldest] = this.#breakers.keys()
    if (this.#breakers.size >= this.#membersMax && oldest !== undefined) this.#breakers.delete(oldest)
    const breaker = new Breaker(this.#options)
    this.#breakers.set(id, breaker)
    return breaker
  }
}

export interface CollectionRouteOptions extends BreakerOptions {
  readonly membersMax: number
  readonly idleMillis: number
}

/** The routes of all collections, by the collection's id. */
export class CollectionRoutes extends Context.Service<
  CollectionRoutes,
  {
    /** The hot path: undefined until `acquire` has built the actor. */
    readonly peek: (collectionId: string) => CollectionRoute | undefined
    readonly acquire: (collectionId: string) => Effect.Effect<CollectionRoute, ActorUnavailable>
  }
>()("signalbox/llm/CollectionRoutes") {
  static readonly layer = (options: CollectionRouteOptions): Layer.Layer<CollectionRoutes> =>
    Layer.effect(
      CollectionRoutes,
      Effect.map(
        Supervisor.make({
          name: "collection-route",
          maxIdleMillis: options.idleMillis,
          build: (_collectionId: string) =>
            Effect.sync(() => ({
              state: new CollectionRoute(options, options.membersMax),
              handlers: {}
            }))
        }),
        ({ acquire, peek }) => ({ acquire, peek })
      )
    )
}
