import type { FairShares } from "./FairShares.ts"

/** The part of its user's share that one request has taken: it grows, and is given back when all holders have let go of it. */
export class GrowingShare {
  private readonly shares: FairShares
  private readonly userId: string
  private amount = 0
  private holders = 1

  constructor(shares: FairShares, userId: string) {
    this.shares = shares
    this.userId = userId
  }

  /** False: so much in all would be more than the user's share. */
  grow(amount: number): boolean {
    const more = amount - this.amount
    if (more > 0 && !this.shares.take(this.userId, more)) return false
    this.amount = Math.max(this.amount, amount)
    return true
  }

  hold(): void {
    this.holders++
  }

  release(): void {
    this.holders--
    if (this.holders === 0) this.shares.release(this.userId, this.amount)
  }
}
