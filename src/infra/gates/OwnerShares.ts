import { Effect } from "effect"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import { type Refusal, Turns, type TurnsOptions } from "./Turns.ts"

export interface OwnerSharesOptions extends TurnsOptions {
  /** attempts of the process at once */
  readonly attempts: number
  /** attempts of one owner that wait here for those under way, where these are fast; 0 where it is left out */
  readonly waiting?: number
}

/** When the attempt began, or the time until there may be room for it. */
type Entry = number | Refusal

interface Waiter {
  readonly timer: NodeJS.Timeout
  readonly end: (entry: Entry) => void
}

/**
 * Divides the attempts of a process among the owners: one whose hosts hang, each attempt at another one, leaves
 * room for the others. State: of owners with attempts under way.
 */
export class OwnerShares {
  private readonly shares: FairShares
  private readonly turns = new Map<string, Turns>()
  /** of each owner the first come first; the owner whose turn it is comes first */
  private readonly waiting = new Map<string, Set<Waiter>>()
  private readonly options: OwnerSharesOptions

  constructor(options: OwnerSharesOptions) {
    this.shares = new FairShares(options.attempts)
    this.options = options
  }

  /** Runs an attempt, or tells when there may be room for it. */
  within<A, E>(owner: string, attempt: Effect.Effect<A, E>): Effect.Effect<A | Refusal, E> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => this.enter(owner)),
      (entry): Effect.Effect<A | Refusal, E> => (typeof entry === "number" ? attempt : Effect.succeed(entry)),
      (entry) => Effect.sync(() => (typeof entry === "number" ? this.leave(owner, entry) : undefined))
    )
  }

  private enter(owner: string): Effect.Effect<Entry> {
    const { turnMillis, waiting: most = 0 } = this.options
    const line = this.waiting.get(owner)?.size ?? 0
    if (line === 0 && this.shares.take(owner, 1)) return Effect.succeed(this.begin(owner))
    const turns = this.turns.get(owner)
    return turns === undefined || line >= most || turns.meanMillis > turnMillis
      ? Effect.succeed(this.refusal(owner))
      : Effect.callback((resume) => this.wait(owner, (entry) => resume(Effect.succeed(entry))))
  }

  /** Not to be interrupted: `end` is called within `turnMillis`. */
  private wait(owner: string, end: Waiter["end"]): void {
    const line = this.waiting.get(owner) ?? new Set()
    this.waiting.set(owner, line)
    const waiter: Waiter = {
      end,
      timer: setTimeout(() => {
        line.delete(waiter)
        if (line.size === 0) this.waiting.delete(owner)
        end(this.refusal(owner))
      }, this.options.turnMillis)
    }
    line.add(waiter)
  }

  private refusal(owner: string): Refusal {
    const turns = this.turns.get(owner) ?? new Turns()
    return turns.next(owner, performance.now(), Math.max(this.shares.held(owner), 1), this.options)
  }

  private begin(owner: string): number {
    if (!this.turns.has(owner)) this.turns.set(owner, new Turns())
    return performance.now()
  }

  private leave(owner: string, began: number): void {
    this.shares.release(owner, 1)
    this.turns.get(owner)?.ended(performance.now() - began)
    for (const [other, line] of this.waiting) this.letIn(other, line)
    if (this.shares.held(owner) === 0) this.turns.delete(owner)
  }

  private letIn(owner: string, line: Set<Waiter>): void {
    const [first] = line
    if (first === undefined || !this.shares.take(owner, 1)) return
    clearTimeout(first.timer)
    line.delete(first)
    // The others have their turn before its next one.
    this.waiting.delete(owner)
    if (line.size > 0) this.waiting.set(owner, line)
    first.end(this.begin(owner))
  }
}
