import { Effect } from "effect"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import { type Refusal, Turns, type TurnsOptions } from "./Turns.ts"

export interface OwnerSharesOptions extends TurnsOptions {
  /** attempts of the process at once */
  readonly attempts: number
}

/**
 * Divides the attempts of a process among the owners: one whose hosts hang, each attempt at another one, leaves
 * room for the others. State: of owners with attempts under way.
 */
export class OwnerShares {
  private readonly shares: FairShares
  private readonly turns = new Map<string, Turns>()
  private readonly options: OwnerSharesOptions

  constructor(options: OwnerSharesOptions) {
    this.shares = new FairShares(options.attempts)
    this.options = options
  }

  /** Runs an attempt, or tells when there may be room for it. */
  within<A, E>(owner: string, attempt: Effect.Effect<A, E>): Effect.Effect<A | Refusal, E> {
    return Effect.acquireUseRelease(
      Effect.sync(() => this.enter(owner)),
      (entry): Effect.Effect<A | Refusal, E> => (typeof entry === "number" ? attempt : Effect.succeed(entry)),
      (entry) => Effect.sync(() => (typeof entry === "number" ? this.leave(owner, entry) : undefined))
    )
  }

  /** when it began */
  private enter(owner: string): number | Refusal {
    const now = performance.now()
    const turns = this.turns.get(owner) ?? new Turns()
    if (!this.shares.take(owner, 1))
      return turns.next(owner, now, Math.max(this.shares.held(owner), 1), this.options)
    this.turns.set(owner, turns)
    return now
  }

  private leave(owner: string, began: number): void {
    this.shares.release(owner, 1)
    this.turns.get(owner)?.ended(performance.now() - began)
    if (this.shares.held(owner) === 0) this.turns.delete(owner)
  }
}
