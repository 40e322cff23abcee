import type { GrantAnswer, LimitGrants } from "./LimitGrants.ts"

/** `retired`: freed credit is given back. `lost`: others have given the lease up, so that nothing is freed. */
type Standing = "open" | "retired" | "lost"

/**
 * This process's lease of one limit in one window, and the amount that calls hold of it. It ends with its window or its
 * actor; the rest of later calls is then given back, after a crash of the process at its next start, or by others.
 */
export class LeaseRow {
  readonly limit: string
  readonly windowStart: number
  /** monotonic; Infinity without windows */
  readonly endsAtMillis: number
  /** leased, and held by no call */
  free = 0n
  /** leased, and held by calls */
  held = 0n
  /** the rest of the limit for calls here without any holds, as last asked; undefined: no cap */
  reach: bigint | undefined = undefined
  /** leased by other processes, or on its way back from here, when it was asked last */
  elsewhere = 0n
  /** the most that was held at once of late */
  peak = 0n
  /** used up since the last tick, and in the one before */
  spent = 0n
  spentBefore = 0n
  usedAtMillis: number
  private standing: Standing = "open"
  private readonly grants: LimitGrants["Service"]

  constructor(answer: GrantAnswer, askedAtMillis: number, grants: LimitGrants["Service"]) {
    this.limit = answer.limit
    this.windowStart = answer.windowStart
    this.endsAtMillis = askedAtMillis + answer.endsInMillis
    this.usedAtMillis = askedAtMillis
    this.grants = grants
  }

  get isOpen(): boolean {
    return this.standing === "open"
  }

  granted({ available, granted, others, returning }: GrantAnswer): void {
    if (this.isOpen) this.free += granted
    else this.giveBack(granted)
    this.elsewhere = others + returning
    this.reach = available === undefined ? undefined : available + this.elsewhere + this.free + this.held
  }

  /** Part of what is free, which must be enough. */
  hold(amount: bigint, nowMillis: number): void {
    this.free -= amount
    this.held += amount
    if (this.held > this.peak) this.peak = this.held
    this.usedAtMillis = nowMillis
  }

  /** Ends a hold of which `spent` was used up. */
  unhold(amount: bigint, spent: bigint): void {
    this.held -= amount
    this.used(spent)
    const left = amount - spent
    if (this.isOpen) this.free += left
    else this.giveBack(left)
  }

  /** Used up without a hold: a call that cost more. */
  spend(amount: bigint): void {
    this.free -= amount
    this.used(amount)
  }

  /** The target size of the lease: twice the recent peak of simultaneous calls, and their use in a second. */
  get level(): bigint {
    return 2n * this.peak + (this.spent > this.spentBefore ? this.spent : this.spentBefore)
  }

  /** Once a second: lowers the weight of past demand, and gives back a large surplus. */
  tick(): void {
    this.peak -= this.peak / 8n
    if (this.held > this.peak) this.peak = this.held
    this.spentBefore = this.spent
    this.spent = 0n
    if (this.free > 2n * this.level) this.giveBackFree(this.free - this.level)
  }

  giveBackFree(amount: bigint = this.free, tell?: string): void {
    this.free -= amount
    this.giveBack(amount, tell)
  }

  /** Its window or its actor has ended. */
  retire(): void {
    if (!this.isOpen) return
    this.standing = "retired"
    this.giveBackFree()
  }

  lose(): void {
    this.standing = "lost"
    this.free = 0n
  }

  private used(amount: bigint): void {
    this.spent += amount
    if (this.reach !== undefined) this.reach -= amount
  }

  private giveBack(amount: bigint, tell?: string): void {
    if (amount > 0n && this.standing !== "lost") {
      this.grants.giveBack(this.limit, this.windowStart, amount, tell)
    }
  }
}
