import * as Effect from "effect/Effect"
import type { Choice } from "./Hold.ts"
import { above } from "./LeaseAsk.ts"
import { LeaseRow } from "./LeaseRow.ts"
import type { GrantAnswer, GrantAsk, LimitGrants, LimitsAway } from "./LimitGrants.ts"

/** The leases of one user by limit, of the present windows. A lease is kept at the size of recent demand. */
export class LeaseTable {
  private readonly grants: LimitGrants["Service"]
  private readonly now: () => number
  private readonly rows = new Map<string, LeaseRow>()
  private epoch: number | undefined
  private isClosed = false

  constructor(grants: LimitGrants["Service"], now: () => number) {
    this.grants = grants
    this.now = now
    this.epoch = grants.epoch()
  }

  get isEmpty(): boolean {
    return this.rows.size === 0
  }

  get(limit: string): LeaseRow | undefined {
    return this.rows.get(limit)
  }

  /** The leases of a choice, of windows that last; undefined where one is missing, or nothing is sure. */
  of(choice: Choice): ReadonlyArray<LeaseRow> | undefined {
    if (!this.isSure()) return undefined
    const now = this.now()
    const found: Array<LeaseRow> = []
    for (const limit of choice.limits) {
      const row = this.rows.get(limit)
      if (row === undefined) return undefined
      if (now >= row.endsAtMillis) {
        row.retire()
        this.rows.delete(limit)
        return undefined
      }
      found.push(row)
    }
    return found
  }

  /** A window never gives more than it would have given: asking again is of no use until the next one. */
  isUsedUp(choice: Choice, tokensMin: number): boolean {
    const now = this.now()
    const need = choice.amountOf(tokensMin)
    return choice.limits.some((limit) => {
      const row = this.rows.get(limit)
      if (row?.reach === undefined || row.endsAtMillis === Infinity) return false
      return now < row.endsAtMillis && row.reach < need
    })
  }

  /** Leases what is asked of each limit, or, where one need is not met, nothing. */
  lease(limits: ReadonlyArray<string>, askOf: (limit: string) => GrantAsk): Effect.Effect<void, LimitsAway> {
    return Effect.suspend(() => {
      this.isSure()
      const epoch = this.epoch
      const askedAt = this.now()
      return Effect.map(this.grants.grant(limits.map(askOf)), (answers) => {
        if (this.grants.epoch() !== epoch) return
        for (const answer of answers) this.granted(answer, askedAt)
      })
    })
  }

  /** Fills leases up to the size that calls needed of late. */
  readonly topUp: Effect.Effect<void, LimitsAway> = Effect.suspend(() => {
    const now = this.now()
    const low = Array.from(this.rows.values()).filter((row) => row.free < row.level && now < row.endsAtMillis)
    if (low.length === 0) return Effect.void
    return this.lease(low.map(({ limit }) => limit).toSorted(), (limit) => {
      const row = this.rows.get(limit)
      return { limit, need: 0n, want: 0n, more: above(row?.level ?? 0n, row?.free ?? 0n) }
    })
  })

  giveBackFree(tellUser: string): void {
    for (const row of this.rows.values()) row.giveBackFree(row.free, tellUser)
  }

  /** Once a second. Gives back leases that have been idle for this long. */
  tick(idleMillis: number): void {
    const now = this.now()
    for (const [limit, row] of this.rows) {
      row.tick()
      if (now >= row.endsAtMillis) row.retire()
      else if (now >= row.usedAtMillis + idleMillis) row.giveBackFree()
      // A used-up window is remembered as long as it lasts.
      const isForgotten = row.free === 0n && row.held === 0n && row.endsAtMillis === Infinity
      if (!row.isOpen || isForgotten) this.rows.delete(limit)
    }
  }

  close(): void {
    this.isClosed = true
    for (const row of this.rows.values()) row.retire()
    this.rows.clear()
  }

  /** Whether its leases still hold: others give up those of a process without a heartbeat. */
  private isSure(): boolean {
    const epoch = this.grants.epoch()
    if (epoch === undefined || this.isClosed) return false
    if (epoch !== this.epoch) {
      for (const row of this.rows.values()) row.lose()
      this.rows.clear()
      this.epoch = epoch
    }
    return true
  }

  private granted(answer: GrantAnswer, askedAt: number): void {
    // Closed meanwhile: the grant would stay unused here.
    if (this.isClosed) return this.grants.giveBack(answer.limit, answer.windowStart, answer.granted)
    let row = this.rows.get(answer.limit)
    if (row === undefined || row.windowStart !== answer.windowStart) {
      row?.retire()
      row = new LeaseRow(answer, askedAt, this.grants)
      this.rows.set(answer.limit, row)
    }
    row.granted(answer)
  }
}
