/**
 * State: one row per key: its bucket's tokens, and the tokens leased from the bucket that machines share.
 * Messages: none; `take` is called synchronously on the hot path, grants are put in by the actor of a key's lease.
 * Limits: `maxBuckets` rows (the oldest is forgotten, which refills it); a row that is full and idle is swept.
 * Restart policy: the supervisor's; its fibers only sweep and ask whether the lease is back.
 * In a crash the rows are lost: every key has a full bucket again, or, where machines share, what Redis says.
 */
import { type RateDecision, RateWindowTable } from "./RateWindow.ts"

export class RateBucketTable {
  readonly windows: RateWindowTable
  readonly #rows = new Map<string, Row>()
  readonly #options: RateTableOptions
  #sharing: Sharing
  #refused = 0
  #forgotten = 0
  #leaseFailures = 0

  constructor(options: RateTableOptions) {
    this.#options = options
    this.windows = new RateWindowTable(options.maxBuckets)
    this.#sharing = options.isShared ? "shared" : "alone"
  }

  get sharing(): Sharing {
    return this.#sharing
  }

  /** Takes `cost` tokens, or none. Undefined: the tokens may be there, but a lease must be fetched first. */
  take(ask: RateAsk, nowMillis: number): RateDecision | undefined {
    const row = this.#rowOf(ask, nowMillis)
    const cost = Math.min(ask.cost, row.burst)
    if (row.lease >= cost) {
      row.lease -= cost
      return decide(row, true, cost)
    }
    if (row.lease + row.tokens < cost) {
      this.#refused++
      return decide(row, false, cost)
    }
    return this.#sharing === "shared" ? undefined : this.#spend(row, cost)
  }

  /** Decides from what this process knows alone: for when the lease cannot be asked. */
  takeAlone(ask: RateAsk, nowMillis: number): RateDecision {
    const decision = this.take(ask, nowMillis)
    if (decision !== undefined) return decision
    const row = this.#rowOf(ask, nowMillis)
    return this.#spend(row, Math.min(ask.cost, row.burst))
  }

  /** The lease to request from the shared bucket; undefined when `take` can decide without it. */
  leaseWanted(ask: RateAsk, nowMillis: number): LeaseWanted | undefined {
    const row = this.#rowOf(ask, nowMillis)
    const cost = Math.min(ask.cost, row.burst)
    if (this.#sharing !== "shared" || row.lease >= cost || row.lease + row.tokens < cost) return undefined
    // A lease used up in time doubles the next; one that ran out unused was too large. So a quiet key wastes nothing.
    const want = Math.min(row.burst - row.lease, Math.max(cost - row.lease, row.nextLease))
    row.nextLease = Math.min(this.#options.leaseTokens, row.nextLease * 2)
    return { ratePerMinute: row.ratePerMinute, burst: row.burst, held: row.lease, want }
  }

  /** Puts a grant in. Times are those before the request was sent: a lease must end here before it ends in Redis. */
  granted(ask: RateAsk, grant: LeaseGrant, sentAtMillis: number): void {
    const row = this.#rowOf(ask, sentAtMillis)
    row.lease += grant.granted
    row.leaseUntilMillis = sentAtMillis + this.#options.leaseMillis
    // From here on an upper bound of what the shared bucket holds: without it a refusal can be decided on the spot.
    row.tokens = grant.remaining
    row.atMillis = sentAtMillis
  }

  leaseFailed(): void {
    this.#leaseFailures++
    this.#sharing = "away"
  }

  leaseIsBack(): void {
    this.#sharing = "shared"
  }

  /** Forgets the rows that are as good as none: full, no lease, and not used for `idleMillis`; and ended windows. */
  sweep(nowMillis: number): void {
    this.windows.sweep(nowMillis)
    for (const [keyId, row] of this.#rows) {
      if (nowMillis - row.atMillis < this.#options.idleMillis) continue
      const leased = nowMillis < row.leaseUntilMillis ? row.lease : 0
      if (leased === 0 && refilled(row, nowMillis) >= row.burst) this.#rows.delete(keyId)
    }
  }

  stats(): RateStats {
    return {
      sharing: this.#sharing,
      buckets: this.#rows.size + this.windows.size,
      refused: this.#refused + this.windows.refused,
      forgotten: this.#forgotten + this.windows.forgotten,
      leaseFailures: this.#leaseFailures
    }
  }

  #spend(row: Row, cost: number): RateDecision {
    row.tokens -= cost - row.lease
    row.lease = 0
    return decide(row, true, cost)
  }

  /** The key's row as of now: refilled, without a lease that has ended, and with the key's present rate. */
  #rowOf({ burst, keyId, ratePerMinute }: RateAsk, nowMillis: number): Row {
    const row = this.#rows.get(keyId)
    if (row === undefined) return this.#add(keyId, ratePerMinute, burst, nowMillis)
    row.tokens = refilled(row, nowMillis)
    row.atMillis = Math.max(row.atMillis, nowMillis)
    if (nowMillis >= row.leaseUntilMillis && row.lease > 0) {
      row.lease = 0
      row.nextLease = 1
    }
    if (row.ratePerMinute !== ratePerMinute || row.burst !== burst) {
      row.ratePerMinute = ratePerMinute
      row.burst = burst
      row.tokens = Math.min(row.tokens, burst)
    }
    return row
  }

  #add(keyId: string, ratePerMinute: number, burst: number, nowMillis: number): Row {
    if (this.#rows.size >= this.#options.maxBuckets) {
      const oldest = this.#rows.keys().next()
      if (oldest.done !== true) this.#rows.delete(oldest.value)
      this.#forgotten++
    }
    const row: Row = {
      ratePerMinute,
      burst,
      tokens: burst,
      atMillis: nowMillis,
      lease: 0,
      leaseUntilMillis: 0,
      nextLease: 1
    }
    this.#rows.set(keyId, row)
    return row
  }
}

interface RateTableOptions {
  readonly isShared: boolean
  readonly maxBuckets: number
  readonly idleMillis: number
  /** the most tokens leased at a time */
  readonly leaseTokens: number
  readonly leaseMillis: number
}

/** The place of the buckets: this process, Redis, or this process because Redis is away. */
export type Sharing = "alone" | "shared" | "away"

export interface RateAsk {
  readonly keyId: string
  /** positive */
  readonly ratePerMinute: number
  /** tokens of a full bucket, at least 1 */
  readonly burst: number
  /** tokens; more than `burst` counts as a full bucket */
  readonly cost: number
}

export interface LeaseWanted {
  readonly ratePerMinute: number
  readonly burst: number
  /** unspent tokens of the lease in hand */
  readonly held: number
  readonly want: number
}

export interface LeaseGrant {
  /** whole tokens, 0 to `want`, on top of `held` */
  readonly granted: number
  /** tokens left in the shared bucket, with their fraction */
  readonly remaining: number
}

export interface RateStats {
  readonly sharing: Sharing
  /** windows among them, as in the other figures */
  readonly buckets: number
  readonly refused: number
  /** rows dropped for want of room */
  readonly forgotten: number
  readonly leaseFailures: number
}

interface Row {
  ratePerMinute: number
  burst: number
  /** alone: the bucket. Shared: an upper bound of what Redis holds */
  tokens: number
  atMillis: number
  /** tokens in hand, taken out of the shared bucket */
  lease: number
  leaseUntilMillis: number
  nextLease: number
}

const refilled = (row: Row, nowMillis: number): number =>
  Math.min(row.burst, row.tokens + (Math.max(0, nowMillis - row.atMillis) * row.ratePerMinute) / 60_000)

const decide = (row: Row, allowed: boolean, cost: number): RateDecision => {
  const available = row.lease + row.tokens
  const secondsPerToken = 60 / row.ratePerMinute
  return {
    allowed,
    limit: row.ratePerMinute,
    remaining: Math.floor(available),
    resetSeconds: Math.ceil((row.burst - available) * secondsPerToken),
    retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil((cost - available) * secondsPerToken))
  }
}
