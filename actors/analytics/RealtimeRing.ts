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
  #sweptMillis = 0
  #cleared = 0

  constructor(limits: RealtimeLimits) {
    this.#budget = { used: 0, max: limits.presencesMax }
    this.#sitesMax = limits.sitesMax
  }

  /** Counts an event that was accepted. Engage pings show nothing that their page view has not shown. */
  add(event: RealtimeEvent, nowMillis: number): void {
    if (event.kind === "engage" || event.ts <= nowMillis - historyMillis || event.ts > nowMillis + 1000)
      return
    this.#ringOf(event.site).add(event, nowMillis)
    if (nowMillis - this.#sweptMillis >= sweepEveryMillis) this.#sweep(nowMillis)
  }

  /** Frees the place of a silent site: its visitors left without an event that says so. */
  #sweep(nowMillis: number): void {
    this.#sweptMillis = nowMillis
    for (const ring of this.#sites.values()) ring.expire(Math.floor(nowMillis / 1000))
  }

  /** Forgets everything. Answers whether that was the last time: a filling that began before it is for nothing. */
  clear(): () => boolean {
    for (const ring of this.#sites.values()) ring.clear()
    this.#sites.clear()
    const cleared = ++this.#cleared
    return () => cleared === this.#cleared
  }

  snapshot(site: string, nowMillis: number): RealtimeSnapshot {
    return (this.#sites.get(site) ?? new SiteRing(this.#budget)).snapshot(nowMillis)
  }

  /** The ring's counts, for /metrics. */
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

interface RealtimeLimits {
  /** sites with a ring of their own, 8 KB each */
  readonly sitesMax: number
  /** visitors, and pages of a visitor, in the last five minutes; about 190 bytes each */
  readonly presencesMax: number
}

/** Realtime figures. Source: contract/analytics#realtime. */
interface RealtimeSnapshot {
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

/** Presences of silent sites are let go of this often, while events come at all. */
const sweepEveryMillis = 60_000

const topPages = 5

/** A visitor who stays moves to the end of its map no more often. */
const moveEverySeconds = 15

/** Of one visitor in five minutes; more than a person reads. */
const pagesMax = 100

interface PresenceBudget {
  used: number
  readonly max: number
}

/** A visitor, and the pages that it has seen. */
interface Presence {
  second: number
  /** when it came to the end of its map */
  movedSecond: number
  readonly pages: Array<PageSeen>
}

interface PageSeen {
  readonly path: string
  second: number
}

class SiteRing {
  newestSecond = 0
  readonly #budget: PresenceBudget
  /** page views of second s at s modulo its length; only the last `historySeconds` of them hold */
  readonly #pageviews = new Uint32Array(historySeconds)
  /** by visitor, about in the order in which they were last seen */
  readonly #presences = new Map<bigint, Presence>()

  constructor(budget: PresenceBudget) {
    this.#budget = budget
  }

  add(event: RealtimeEvent, nowMillis: number): void {
    const second = Math.floor(event.ts / 1000)
    this.#advance(Math.max(second, Math.floor(nowMillis / 1000)))
    if (second <= this.newestSecond - historySeconds) return
    if (event.kind === "pageview") this.#pageviews[second % historySeconds]!++
    if (second <= this.newestSecond - activeSeconds) return
    const presence = this.#see(event.visitor, second)
    if (presence !== undefined && event.kind === "pageview") this.#seePage(event, presence, second)
  }

  snapshot(nowMillis: number): RealtimeSnapshot {
    const now = Math.floor(nowMillis / 1000)
    this.#advance(now)
    const perMinute = Array.from({ length: minutes }, (_, index) => {
      const minute = minutes - 1 - index
      return { minute, pageviews: this.#pageviewsBetween(now - 60 * (minute + 1), now - 60 * minute) }
    })
    let visitors = 0
    for (const presence of this.#presences.values()) if (this.#isActive(presence.second)) visitors++
    return {
      visitors,
      pageviews: this.#pageviewsBetween(now - activeSeconds, this.newestSecond),
      pages: this.#busiestPages(),
      perMinute
    }
  }

  clear(): void {
    for (const visitor of this.#presences.keys()) this.#forget(visitor)
  }

  /** Forgets the seconds and presences that a later second pushes out. Clocks that jump back change nothing. */
  #advance(second: number): void {
    if (second <= this.newestSecond) return
    const from = Math.max(this.newestSecond + 1, second - historySeconds + 1)
    for (let passed = from; passed <= second; passed++) this.#pageviews[passed % historySeconds] = 0
    this.newestSecond = second
    this.expire(second)
  }

  /** Forgets who was not seen in the five minutes before. */
  expire(second: number): void {
    for (const [visitor, presence] of this.#presences) {
      if (presence.second > second - activeSeconds) break
      this.#forget(visitor)
    }
  }

  #isActive(second: number): boolean {
    return second > this.newestSecond - activeSeconds
  }

  /** Undefined where there is no room for another visitor. */
  #see(visitor: bigint, second: number): Presence | undefined {
    const known = this.#presences.get(visitor)
    if (known === undefined) {
      if (!this.#makeRoom()) return undefined
      const presence = { second, movedSecond: second, pages: [] }
      this.#presences.set(visitor, presence)
      return presence
    }
    if (second > known.second) known.second = second
    // Being moved costs two more look-ups, and those who are to be forgotten may stay a little longer.
    if (second >= known.movedSecond + moveEverySeconds) {
      known.movedSecond = second
      this.#presences.delete(visitor)
      this.#presences.set(visitor, known)
    }
    return known
  }

  #seePage({ path, visitor }: RealtimeEvent, presence: Presence, second: number): void {
    for (const page of presence.pages) {
      if (page.path !== path) continue
      page.second = Math.max(page.second, second)
      return
    }
    const stale = presence.pages.findIndex((page) => !this.#isActive(page.second))
    if (stale >= 0) presence.pages[stale] = { path, second }
    else if (presence.pages.length < pagesMax && this.#makeRoom()) {
      // Making room may have cost this very visitor its place.
      if (this.#presences.has(visitor)) presence.pages.push({ path, second })
      else this.#budget.used--
    }
  }

  /** One more presence; this site's own oldest goes where there are too many. False: it has none to give up. */
  #makeRoom(): boolean {
    if (this.#budget.used >= this.#budget.max) {
      const oldest = this.#presences.keys().next()
      if (oldest.done === true) return false
      this.#forget(oldest.value)
    }
    this.#budget.used++
    return true
  }

  #forget(visitor: bigint): void {
    const presence = this.#presences.get(visitor)
    if (presence === undefined) return
    this.#budget.used -= 1 + presence.pages.length
    this.#presences.delete(visitor)
  }

  #busiestPages(): RealtimeSnapshot["pages"] {
    const visitorsByPath = new Map<string, number>()
    for (const { pages } of this.#presences.values()) {
      for (const { path, second } of pages) {
        if (this.#isActive(second)) visitorsByPath.set(path, (visitorsByPath.get(path) ?? 0) + 1)
      }
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
