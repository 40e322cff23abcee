/**
 * Postgres's figures of one lease, and the returns that it does not know yet. Totals since the owner's generation
 * began.
 */
interface Totals {
  readonly limit: string
  readonly windowStart: number
  granted: bigint
  returned: bigint
  /** of the returned total, the part that Postgres has confirmed */
  said: bigint
}

/** A window that ended so long ago is forgotten: nothing more can come for it. */
const forgottenAfterMillis = 15 * 24 * 3_600_000

/**
 * Totals of this process's leases. Because they only rise, a statement whose outcome is unknown is repeated without
 * harm, and its grant is found by the first statement that reads the total.
 */
export class LeaseBook {
  private readonly totals = new Map<string, Totals>()
  private readonly unsaid = new Set<Totals>()
  private readonly told = new Set<string>()

  /** Takes Postgres's total; answers the granted part of it that was not known here. */
  heard(limit: string, windowStart: number, granted: bigint): bigint {
    const totals = this.of(limit, windowStart)
    const news = granted - totals.granted
    if (news <= 0n) return 0n
    totals.granted = granted
    return news
  }

  giveBack(limit: string, windowStart: number, amount: bigint, tellUser?: string): void {
    const totals = this.of(limit, windowStart)
    totals.returned += amount
    this.unsaid.add(totals)
    if (tellUser !== undefined) this.told.add(tellUser)
  }

  /** Returns that Postgres does not know yet; `said` once it knows them. */
  takeUnsaid(): { readonly totals: ReadonlyArray<Readonly<Totals>>; readonly told: ReadonlyArray<string> } {
    const unsaid = {
      totals: Array.from(this.unsaid, (totals) => ({ ...totals })),
      told: Array.from(this.told)
    }
    this.unsaid.clear()
    this.told.clear()
    return unsaid
  }

  said({ totals }: ReturnType<LeaseBook["takeUnsaid"]>): void {
    for (const { limit, returned, windowStart } of totals) {
      const known = this.of(limit, windowStart)
      if (returned > known.said) known.said = returned
    }
  }

  /** Given back here, and not yet confirmed by Postgres. */
  returning(limit: string, windowStart: number): bigint {
    const { returned, said } = this.of(limit, windowStart)
    return returned - said
  }

  notSaid({ told, totals }: ReturnType<LeaseBook["takeUnsaid"]>): void {
    for (const { limit, windowStart } of totals) this.unsaid.add(this.of(limit, windowStart))
    for (const user of told) this.told.add(user)
  }

  get hasUnsaid(): boolean {
    return this.unsaid.size > 0
  }

  forget(beforeMillis: number): void {
    for (const [key, { windowStart }] of this.totals) {
      if (windowStart > 0 && windowStart < beforeMillis - forgottenAfterMillis) this.totals.delete(key)
    }
  }

  clear(): void {
    this.totals.clear()
    this.unsaid.clear()
    this.told.clear()
  }

  private of(limit: string, windowStart: number): Totals {
    const key = `${limit} ${windowStart}`
    const known = this.totals.get(key)
    if (known !== undefined) return known
    const totals = { limit, windowStart, granted: 0n, returned: 0n, said: 0n }
    this.totals.set(key, totals)
    return totals
  }
}
