/**
 * State: a visitor's events of this and of the last minute; a token bucket by site for collected events.
 * Messages: none; both questions are asked synchronously on the hot path of ingest.
 * Limits: `visitorsMax` rows of 28 bytes, set aside once, and `sitesMax` sites; beyond it the oldest are forgotten.
 * Restart policy: none needed; it holds no fiber and cannot fail. Nothing is swept: new rows take the oldest's place.
 * In a crash all counts are lost: every visitor and site may come again at once.
 */
export class EventLimiter {
  readonly #options: EventLimiterOptions
  readonly #setMask: number
  // The rows of visitors, column by column: a map of objects costs four times the memory, and its collection pauses.
  readonly #low: Uint32Array
  readonly #high: Uint32Array
  readonly #count: Uint32Array
  readonly #before: Uint32Array
  readonly #startMillis: Float64Array
  /** to see the two halves of a visitor without making big integers */
  readonly #visitor = new BigUint64Array(1)
  readonly #halves = new Uint32Array(this.#visitor.buffer)
  readonly #sites = new Map<string, SiteBucket>()
  #forgotten = 0

  constructor(options: EventLimiterOptions) {
    this.#options = options
    const sets = 2 ** Math.max(0, Math.floor(Math.log2(options.visitorsMax / ways)))
    this.#setMask = sets - 1
    this.#low = new Uint32Array(sets * ways)
    this.#high = new Uint32Array(sets * ways)
    this.#count = new Uint32Array(sets * ways)
    this.#before = new Uint32Array(sets * ways)
    this.#startMillis = new Float64Array(sets * ways)
  }

  /** Counts dropped for want of room while they still mattered. */
  get forgotten(): number {
    return this.#forgotten
  }

  /**
   * One event of a visitor: 64 evenly distributed bits of one site and day, so they alone are the key. The last minute
   * counts by the share of it that lies within the 60 s before now, so that no two windows meet at a minute's turn.
   * `nowMillis` is monotonic.
   */
  takeVisitor(visitor: bigint, nowMillis: number): RateDecision {
    this.#visitor[0] = visitor
    return this.take(this.#halves[0] ?? 0, this.#halves[1] ?? 0, nowMillis)
  }

  /** The same for any other key of two times 32 evenly distributed bits. */
  take(low: number, high: number, nowMillis: number): RateDecision {
    const row = this.#rowOf(low, high, nowMillis)
    const count = this.#count[row] ?? 0
    const before = this.#before[row] ?? 0
    const sinceMillis = nowMillis - this.#startOf(row)
    const perMinute = this.#options.visitorEventsPerMinute
    if (count + before * (1 - sinceMillis / minuteMillis) + 1 > perMinute) {
      return refusal(waitMillis(count, before, perMinute) - sinceMillis)
    }
    this.#count[row] = count + 1
    return allowed
  }

  /** Some collected events of a site: all of them or none. */
  takeSite(site: string, events: number, nowMillis: number): RateDecision {
    const perSecond = this.#options.siteEventsPerSecond
    const bucket = this.#sites.get(site) ?? this.#addSite(site, nowMillis)
    const passedMillis = Math.max(0, nowMillis - bucket.atMillis)
    bucket.tokens = Math.min(perSecond, bucket.tokens + (passedMillis * perSecond) / 1000)
    bucket.atMillis = nowMillis
    if (bucket.tokens < events) return refusal(((events - bucket.tokens) * 1000) / perSecond)
    bucket.tokens -= events
    return allowed
  }

  /** The visitor's row, its minute being the present one. A visitor's lower half chooses the set that it may be in. */
  #rowOf(low: number, high: number, nowMillis: number): number {
    const first = (low & this.#setMask) * ways
    let oldest = first
    for (let row = first; row < first + ways; row++) {
      if (this.#low[row] === low && this.#high[row] === high && this.#count[row] !== 0) {
        if (nowMillis - this.#startOf(row) >= minuteMillis) this.#turn(row, nowMillis)
        return row
      }
      if (this.#startOf(row) < this.#startOf(oldest)) oldest = row
    }
    if (this.#count[oldest] !== 0 && nowMillis - this.#startOf(oldest) < minuteMillis) this.#forgotten++
    this.#low[oldest] = low
    this.#high[oldest] = high
    this.#count[oldest] = 0
    this.#before[oldest] = 0
    this.#startMillis[oldest] = nowMillis
    return oldest
  }

  /** The minute of the row is over: it is the last one, or, after a pause, of no account. */
  #turn(row: number, nowMillis: number): void {
    const next = this.#startOf(row) + minuteMillis
    const isLast = nowMillis - next < minuteMillis
    this.#before[row] = isLast ? (this.#count[row] ?? 0) : 0
    this.#count[row] = 0
    this.#startMillis[row] = isLast ? next : nowMillis
  }

  #startOf(row: number): number {
    return this.#startMillis[row] ?? 0
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
  /** rounded down to a power of two */
  readonly visitorsMax: number
  readonly sitesMax: number
}

export interface RateDecision {
  readonly allowed: boolean
  /** whole seconds, at least 1; 0 when allowed */
  readonly retryAfterSeconds: number
}

/** Rows in which one visitor may be. */
const ways = 8
const minuteMillis = 60_000

const allowed: RateDecision = { allowed: true, retryAfterSeconds: 0 }

const refusal = (waitMillis: number): RateDecision => ({
  allowed: false,
  retryAfterSeconds: Math.max(1, Math.ceil(waitMillis / 1000))
})

/** Milliseconds from the start of the row's minute until one more event fits. */
const waitMillis = (count: number, before: number, perMinute: number): number =>
  count < perMinute
    ? minuteMillis * (1 - (perMinute - 1 - count) / before)
    : minuteMillis + minuteMillis * (1 - (perMinute - 1) / count)

interface SiteBucket {
  tokens: number
  atMillis: number
}
