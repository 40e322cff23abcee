/** When a service that fails is left alone, and when it is asked again. */
export interface BreakerOptions {
  /** failures in a row that open it */
  readonly failuresMax: number
  /** how long it is open at first; doubled each time the probe after it fails … */
  readonly openMinMillis: number
  /** … up to this; also the longest that a Retry-After is believed */
  readonly openMaxMillis: number
  /** how long a service that rate-limits without saying for how long is left alone */
  readonly limitedMillis: number
}

/** Whether a service may be called now. "probe": it was out, and one call may try whether it is back. */
export type BreakerState = "closed" | "probe" | "open"

/** The circuit breaker of one service, such as a model or a host: a plain value. Times are monotonic milliseconds. */
export class Breaker {
  readonly #options: BreakerOptions
  #failures = 0
  #openedTimes = 0
  /** closed where it is undefined */
  #openUntil: number | undefined
  #isProbing = false

  constructor(options: BreakerOptions) {
    this.#options = options
  }

  state(now: number): BreakerState {
    if (this.#openUntil === undefined) return "closed"
    return now >= this.#openUntil && !this.#isProbing ? "probe" : "open"
  }

  /** When it may be probed; 0 when closed. */
  get openUntil(): number {
    return this.#openUntil ?? 0
  }

  /** Nothing speaks against the service: there is nothing to remember of it. */
  get isUntroubled(): boolean {
    return this.#failures === 0 && this.#openUntil === undefined
  }

  /** A call is under way; while the breaker is not closed no second one is let through. */
  begin(): void {
    this.#isProbing = this.#openUntil !== undefined
  }

  /** The call ended without saying anything about the service: its client left, or the request was at fault. */
  withdraw(): void {
    this.#isProbing = false
  }

  succeed(): void {
    this.#failures = 0
    this.#openedTimes = 0
    this.#openUntil = undefined
    this.#isProbing = false
  }

  fail(now: number): void {
    const isOpen = this.#openUntil !== undefined
    // Of many calls at once that fail together, those after the one that opened it tell nothing new.
    if (isOpen && !this.#isProbing) return
    this.#failures++
    this.#isProbing = false
    if (!isOpen && this.#failures < this.#options.failuresMax) return
    const { openMaxMillis, openMinMillis } = this.#options
    this.#openUntil = now + Math.min(openMaxMillis, openMinMillis * 2 ** this.#openedTimes)
    this.#openedTimes++
  }

  /** It asked to be left alone, which is no failure. */
  limit(now: number, retryAfterMillis: number | undefined): void {
    this.#isProbing = false
    const { limitedMillis, openMaxMillis } = this.#options
    this.#openUntil = now + Math.min(openMaxMillis, retryAfterMillis ?? limitedMillis)
  }
}
