/**
 * State: events of the running and of the last minute by visitor; a token bucket by site for collected events.
 * Messages: none; both questions are asked synchronously on the hot path of ingest.
 * Limits: `visitorsMax` visitors a minute and `sitesMax` sites in memory; beyond it the older half is forgotten.
 * Restart policy: none needed; it holds no fiber and cannot fail.
 * In a crash all counts are lost: every visitor and site may come again at once.
 */
export class EventLimiter {
  readonly #options: EventLimiterOptions
  /** a visitor's identity is of one site and day already, so it alone is the key */
  #running = new Map<bigint, number>()
  #last = new Map<bigint, number>()
  #minuteStartedMillis = Number.NEGATIVE_INFINITY
  readonly #sites = new Map<string, SiteBucket>()

  constructor(options: EventLimiterOptions) {
    this.#options = options
  }

  /**
   * One event of a visitor. The last minute counts by the share of it that lies within the 60 s before now, so that no
   * two windows meet at a minute's turn.
   */
  takeVisitor(visitor: bigint, nowMillis: number): EventVerdict {
    this.#turnMinute(nowMillis)
    const sinceMillis = nowMillis - this.#minuteStartedMillis
    const count = this.#running.get(visitor) ?? 0
    const before = (this.#last.get(visitor) ?? 0) * (1 - sinceMillis / minuteMillis)
    if (count + before + 1 > this.#options.visitorEventsPerMinute) {
      return {
        allowed: false,
        retryAfterSeconds: Math.max(1, Math.ceil((minuteMillis - sinceMillis) / 1000))
      }
    }
    if (count === 0 && this.#running.size >= this.#options.visitorsMax) this.#turn()
    this.#running.set(visitor, count + 1)
    return allowed
  }

  /** Some collected events of a site: all of them or none. */
  takeSite(site: string, events: number, nowMillis: number): EventVerdict {
    const perSecond = this.#options.siteEventsPerSecond
    const bucket = this.#sites.get(site) ?? this.#addSite(site, nowMillis)
    const passedMillis = Math.max(0, nowMillis - bucket.atMillis)
    bucket.tokens = Math.min(perSecond, bucket.tokens + (passedMillis * perSecond) / 1000)
    bucket.atMillis = nowMillis
    if (bucket.tokens < events) {
      return {
        allowed: false,
        retryAfterSeconds: Math.max(1, Math.ceil((events - bucket.tokens) / perSecond))
      }
    }
    bucket.tokens -= events
    return allowed
  }

  #turnMinute(nowMillis: number): void {
    const sinceMillis = nowMillis - this.#minuteStartedMillis
    if (sinceMillis < minuteMillis) return
    this.#turn()
    // Nobody asked for over a minute: what is there is older than it counts.
    if (sinceMillis >= 2 * minuteMillis) this.#last = new Map()
    this.#minuteStartedMillis = nowMillis
  }

  #turn(): void {
    this.#last = this.#running
    this.#running = new Map()
  }

  #addSite(site: string, nowMillis: number): SiteBucket {
    if (this.#sites.size >= this.#options.sitesMax) {
      const oldest = this.#sites.keys().next()
      if (oldest.done !== true) this.#sites.delete(oldest.value)
    }
    const bucket = { tokens: this.#options.siteEventsPerSecond, atMillis: nowMillis }
    this.#sites.set(site, bucket)
    return bucket
  }
}

export interface EventLimiterOptions {
  readonly visitorEventsPerMinute: number
  readonly siteEventsPerSecond: number
  readonly visitorsMax: number
  readonly sitesMax: number
}

export interface EventVerdict {
  readonly allowed: boolean
  /** whole seconds, at least 1; 0 when allowed */
  readonly retryAfterSeconds: number
}

const minuteMillis = 60_000
const allowed: EventVerdict = { allowed: true, retryAfterSeconds: 0 }

interface SiteBucket {
  tokens: number
  atMillis: number
}
