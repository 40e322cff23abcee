/**
 * The ledger as one would keep it on paper: one user, every hold known, no leases. Held amounts count as taken. Amounts
 * are pico-USD, or tokens of an allowance.
 */
export interface PaperHold {
  readonly limits: ReadonlyArray<string>
  amount: bigint
}

export class LedgerModel {
  /** undefined: no cap */
  readonly caps = new Map<string, bigint | undefined>()
  readonly settled = new Map<string, bigint>()
  private readonly holds = new Set<PaperHold>()

  held(limit: string): bigint {
    let sum = 0n
    for (const { amount, limits } of this.holds) if (limits.includes(limit)) sum += amount
    return sum
  }

  settledOf(limit: string): bigint {
    return this.settled.get(limit) ?? 0n
  }

  /** The amount that calls that begin now may hold of all these limits; undefined: without end. */
  available(limits: ReadonlyArray<string>, isWithHolds = true): bigint | undefined {
    let least: bigint | undefined
    for (const limit of limits) {
      const cap = this.caps.get(limit)
      if (cap === undefined) continue
      const left = cap - this.settledOf(limit) - (isWithHolds ? this.held(limit) : 0n)
      if (least === undefined || left < least) least = left
    }
    return least
  }

  hasHolds(limits: ReadonlyArray<string>): boolean {
    return limits.some((limit) => this.held(limit) > 0n)
  }

  hold(limits: ReadonlyArray<string>, amount: bigint): PaperHold {
    const hold = { limits, amount }
    this.holds.add(hold)
    return hold
  }

  end(hold: PaperHold): void {
    this.holds.delete(hold)
  }

  settle(limit: string, amount: bigint): void {
    this.settled.set(limit, this.settledOf(limit) + amount)
  }
}
