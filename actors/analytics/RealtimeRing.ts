import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"

/**
 * State: per site the page views of each second of the last 30 minutes, and who was on which page in the last five.
 * Messages: none; ingest calls `add` at the moment of acceptance, reads call `snapshot`, both synchronously.
 * Limits: `sitesMax` sites (the longest silent one is forgotten) and `presencesMax` presences over all of them.
 * Restart policy: a plain value without fibers: it cannot crash; a new process fills it from the store (`add` again).
 * In a crash everything here is lost and read back from ClickHouse, where the same events are.
 */
export class RealtimeRing {
  readonly #sites = new Map<string, SiteRing>()
  readonly #budget: PresenceBudget
  readonly #sitesMax: number

  constructor(limits: RealtimeLimits) {
    this.#budget = { used: 0, max: limits.presencesMax }
    this.#sitesMax = limits.sitesMax
  }

  /** Counts an event that was accepted. Engage pings show nothing that their page view has not shown. */
  add(event: RealtimeEvent, nowMillis: number): void {
    if (event.kind === "engage" || event.ts <= nowMillis - historyMillis || event.ts > nowMillis + 1000)
      return
    this.#ringOf(event.site).add(event, nowMillis)
  }

  snapshot(site: string, nowMillis: number): RealtimeSnapshot {
    return (this.#sites.get(site) ?? new SiteRing(this.#budget)).snapshot(nowMillis)
  }

  /** What the ring holds, for /metrics. */
  stats(): { readonly sites: number; readonly presences: number } {
    return { sites: this.#sites.size, presences: this.#budget.used }
  }

  #ringOf(site: string): SiteRing {
    const known = this.#sites.get(site)
    if (known !== undefined) return known
    if (this.#sites.size >= this.#sitesMax) this.#forgetQuietest()
    const ring = new SiteRing(this.#budget)
    this.#sites.set(site, ring)
    return ring
  }

  #forgetQuietest(): void {
    let quietest: string | undefined
    let oldest = Infinity
    for (const [site, ring] of this.#sites) {
      if (ring.newestSecond < oldest) {
        quietest = site
        oldest = ring.newestSecond
      }
    }
    if (quietest === undefined) return
    this.#sites.get(quietest)?.clear()
    this.#sites.delete(quietest)
  }
}

export type RealtimeEvent = Pick<StoredEvent, "site" | "kind" | "ts" | "visitor" | "path">

export interface RealtimeLimits {
  /** sites with a ring of their own, 8 KB each */
  readonly sitesMax: number
  /** pairs of visitor and page in the last five minutes, about 150 bytes each */
  readonly presencesMax: number
}

/** Spec 2 A, Realtime response. */
export interface RealtimeSnapshot {
  /** of the last five minutes */
  readonly visitors: number
  readonly pageviews: number
  /** the five with most visitors, most first */
  readonly pages: ReadonlyArray<{ readonly path: string; readonly visitors: number }>
  /** oldest first; `minute` is minutes ago, 29 to 0 */
  readonly perMinute: ReadonlyArray<{ readonly minute: number; readonly pageviews: number }>
}

const minutes = 30
const historySeconds = minutes * 60
const historyMillis = historySeconds * 1000
const activeSeconds = 300
const topPages = 5

interface PresenceBudget {
  used: number
  readonly max: number
}

/** A visitor seen on a page; one object moves to the end of its map whenever it is seen again. */
interface Presence {
  readonly visitor: bigint
  readonly path: string
  second: number
}

class SiteRing {
  newestSecond = 0
  readonly #budget: PresenceBudget
  /** page views of second s at s modulo its length; only the last `historySeconds` of them hold */
  readonly #pageviews = new Uint32Array(historySeconds)
  /** by visitor and page, about in the order in which they were last seen */
  readonly #presences = new Map<string, Presence>()

  constructor(budget: PresenceBudget) {
    this.#budget = budget
  }

  add(event: RealtimeEvent, nowMillis: number): void {
    const second = Math.floor(event.ts / 1000)
    this.#advance(Math.max(second, Math.floor(nowMillis / 1000)))
    if (second <= this.newestSecond - historySeconds) return
    if (event.kind === "pageview") this.#pageviews[second % historySeconds]!++
    if (second > this.newestSecond - activeSeconds) this.#see(event, second)
  }

  snapshot(nowMillis: number): RealtimeSnapshot {
    const now = Math.floor(nowMillis / 1000)
    this.#advance(now)
    const perMinute = Array.from({ length: minutes }, (_, index) => {
      const minute = minutes - 1 - index
      return { minute, pageviews: this.#pageviewsBetween(now - 60 * (minute + 1), now - 60 * minute) }
    })
    return {
      visitors: this.#visitors(),
      pageviews: this.#pageviewsBetween(now - activeSeconds, this.newestSecond),
      pages: this.#busiestPages(),
      perMinute
    }
  }

  clear(): void {
    this.#budget.used -= this.#presences.size
    this.#presences.clear()
  }

  /** Forgets the seconds and presences that a later second pushes out. Clocks that jump back change nothing. */
  #advance(second: number): void {
    if (second <= this.newestSecond) return
    const from = Math.max(this.newestSecond + 1, second - historySeconds + 1)
    for (let passed = from; passed <= second; passed++) this.#pageviews[passed % historySeconds] = 0
    this.newestSecond = second
    for (const [key, presence] of this.#presences) {
      if (presence.second > second - activeSeconds) break
      this.#forget(key)
    }
  }

  #see(event: RealtimeEvent, second: number): void {
    const key = `${event.visitor} ${event.kind === "pageview" ? event.path : ""}`
    const presence = this.#presences.get(key)
    if (presence !== undefined) {
      if (second <= presence.second) return
      presence.second = second
      this.#presences.delete(key)
      this.#presences.set(key, presence)
      return
    }
    if (this.#budget.used >= this.#budget.max) {
      // This site's own oldest makes room; a site that has none is then too small to be shown who is on it.
      const oldest = this.#presences.keys().next()
      if (oldest.done === true) return
      this.#forget(oldest.value)
    }
    this.#budget.used++
    this.#presences.set(key, {
      visitor: event.visitor,
      path: event.kind === "pageview" ? event.path : "",
      second
    })
  }

  #forget(key: string): void {
    if (this.#presences.delete(key)) this.#budget.used--
  }

  /** Presences out of order (events that came late) may still be there; they do not count. */
  *#present(): Generator<Presence> {
    for (const presence of this.#presences.values()) {
      if (presence.second > this.newestSecond - activeSeconds) yield presence
    }
  }

  #visitors(): number {
    const visitors = new Set<bigint>()
    for (const presence of this.#present()) visitors.add(presence.visitor)
    return visitors.size
  }

  #busiestPages(): RealtimeSnapshot["pages"] {
    const visitorsByPath = new Map<string, number>()
    for (const { path } of this.#present()) {
      if (path !== "") visitorsByPath.set(path, (visitorsByPath.get(path) ?? 0) + 1)
    }
    return Array.from(visitorsByPath, ([path, visitors]) => ({ path, visitors }))
      .sort((a, b) => b.visitors - a.visitors || (a.path < b.path ? -1 : 1))
      .slice(0, topPages)
  }

  /** Of the seconds in (after, upTo], as far as they are remembered. */
  #pageviewsBetween(after: number, upTo: number): number {
    let sum = 0
    const first = Math.max(after + 1, this.newestSecond - historySeconds + 1)
    for (let second = first; second <= Math.min(upTo, this.newestSecond); second++) {
      sum += this.#pageviews[second % historySeconds]!
    }
    return sum
  }
}
