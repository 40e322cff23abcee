/**
 * Divides what is bounded for all among its owners: none may hold more than is free. A single owner gets half, each of n
 * greedy ones an equal part of what n + 1 would, and the next one always finds as much as they have (the dynamic
 * threshold of shared packet buffers; Choudhury and Hahne, 1998). An owner that holds nothing takes no memory here.
 */
export class FairShares {
  readonly #capacity: number
  readonly #perOwner: number
  readonly #held = new Map<string, number>()
  #total = 0

  /** `perOwner` caps a share however much is free */
  constructor(capacity: number, perOwner = Infinity) {
    this.#capacity = capacity
    this.#perOwner = perOwner
  }

  get total(): number {
    return this.#total
  }

  /** owners that hold something */
  get owners(): number {
    return this.#held.size
  }

  held(owner: string): number {
    return this.#held.get(owner) ?? 0
  }

  /** false: it would be more than the owner's share, and nothing was taken */
  take(owner: string, amount: number): boolean {
    const after = this.held(owner) + amount
    if (after > this.#capacity - this.#total || after > this.#perOwner) return false
    this.#held.set(owner, after)
    this.#total += amount
    return true
  }

  /** Gives back some of what the owner took. */
  release(owner: string, amount: number): void {
    const before = this.held(owner)
    const given = Math.min(before, amount)
    this.#total -= given
    if (before === given) this.#held.delete(owner)
    else this.#held.set(owner, before - given)
  }
}
