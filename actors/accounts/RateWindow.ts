/**
 * State: one row per subject whose window is open: the cost admitted in it, and its end.
 * Messages: none; `take` is called synchronously, counts of a shared store are put in with `learn`.
 * Limits: `maxWindows` rows (the one that began first is forgotten, which ends it); a row whose window has ended is swept.
 * Restart policy: that of the buckets, whose actor owns it.
 * In a crash the rows are lost: every subject is idle again, or, where machines share, what Redis says.
 */
export class RateWindowTable {
  /** in the order in which they began */
  readonly #rows = new Map<string, Window>()
  readonly #maxWindows: number
  refused = 0
  forgotten = 0

  constructor(maxWindows: number) {
    this.#maxWindows = maxWindows
  }

  get size(): number {
    return this.#rows.size
  }

  /** Takes the cost, or nothing. The first take of an idle subject begins its window. */
  take(ask: WindowAsk, nowMillis: number): RateDecision {
    const window = this.#open(ask.subject, nowMillis)
    const used = (window?.used ?? 0) + ask.cost
    const leftMillis = window === undefined ? ask.seconds * 1_000 : window.endsAtMillis - nowMillis
    if (used <= ask.limit) return this.learn(ask, { allowed: true, used, leftMillis }, nowMillis)
    return this.learn(ask, { allowed: false, used: used - ask.cost, leftMillis }, nowMillis)
  }

  /** The window is known to have no room: a shared store need not be asked. */
  isSpent(ask: WindowAsk, nowMillis: number): boolean {
    return (this.#open(ask.subject, nowMillis)?.used ?? 0) + ask.cost > ask.limit
  }

  /** Puts a count in. Of a shared one the time is that before it was asked for: the window must end here first. */
  learn({ limit, subject }: WindowAsk, count: WindowCount, nowMillis: number): RateDecision {
    const { allowed, leftMillis, used } = count
    if (this.#rows.size >= this.#maxWindows && !this.#rows.has(subject)) {
      const first = this.#rows.keys().next()
      if (first.done !== true) this.#rows.delete(first.value)
      this.forgotten++
    }
    this.#rows.set(subject, { used, endsAtMillis: nowMillis + leftMillis })
    if (!allowed) this.refused++
    const resetSeconds = Math.max(1, Math.ceil(leftMillis / 1_000))
    const remaining = Math.max(0, limit - used)
    return { allowed, limit, remaining, resetSeconds, retryAfterSeconds: allowed ? 0 : resetSeconds }
  }

  /** Forgets the windows that have ended. */
  sweep(nowMillis: number): void {
    for (const subject of this.#rows.keys()) this.#open(subject, nowMillis)
  }

  #open(subject: string, nowMillis: number): Window | undefined {
    const window = this.#rows.get(subject)
    if (window === undefined || nowMillis < window.endsAtMillis) return window
    this.#rows.delete(subject)
    return undefined
  }
}

/** The answer of a bucket or a window. */
export interface RateDecision {
  readonly allowed: boolean
  /** a minute, or in a window: RateLimit-Limit */
  readonly limit: number
  /** requests possible at once from here on: RateLimit-Remaining */
  readonly remaining: number
  /** whole seconds until the bucket is full, or the window over: RateLimit-Reset */
  readonly resetSeconds: number
  /** whole seconds until as much as was asked for is there, at least 1; 0 when allowed: Retry-After */
  readonly retryAfterSeconds: number
}

export interface WindowAsk {
  readonly subject: string
  /** cost that a window admits, at least 1 */
  readonly limit: number
  /** of a window, from its first take */
  readonly seconds: number
  /** whole, 1 to `limit` */
  readonly cost: number
}

/** A window after a take. */
export interface WindowCount {
  readonly allowed: boolean
  /** cost admitted so far */
  readonly used: number
  readonly leftMillis: number
}

interface Window {
  readonly used: number
  readonly endsAtMillis: number
}
