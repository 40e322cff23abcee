/** Counts crashes in a sliding window, to tell a fault that passes from one that stays. */
export class RestartIntensity {
  readonly #maxRestarts: number
  readonly #windowMillis: number
  /** oldest first; at most `maxRestarts + 1` of them matter */
  #crashedAt: ReadonlyArray<number> = []

  constructor(maxRestarts: number, windowMillis: number) {
    this.#maxRestarts = maxRestarts
    this.#windowMillis = windowMillis
  }

  crashed(nowMillis: number): void {
    this.#crashedAt = [...this.#recent(nowMillis), nowMillis].slice(-(this.#maxRestarts + 1))
  }

  mayStart(nowMillis: number): boolean {
    return this.#recent(nowMillis).length <= this.#maxRestarts
  }

  isCalm(nowMillis: number): boolean {
    return this.#recent(nowMillis).length === 0
  }

  #recent(nowMillis: number): ReadonlyArray<number> {
    const oldest = this.#crashedAt[0]
    // Almost every actor has never crashed: don't copy an empty list.
    if (oldest === undefined || nowMillis - oldest < this.#windowMillis) return this.#crashedAt
    return this.#crashedAt.filter((at) => nowMillis - at < this.#windowMillis)
  }
}
