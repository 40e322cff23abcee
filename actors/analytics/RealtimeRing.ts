import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { halvesOf } from "#streams/analytics/VisitorMap.ts"
import { type PresenceList, Presences } from "./Presences.ts"

/**
 * State: per site the page views of each second of the last 30 minutes, and who was on which page in the last five.
 * Messages: none; ingest calls `add` at the moment of acceptance, reads call `snapshot`, both synchronously.
 * Limits: `sitesMax` sites (the longest silent one is forgotten) and `presencesMax` presences over all of them.
 * Restart policy: a plain value without fibers: it cannot crash; a new process fills it from the store (`add` again).
 * In a crash everything here is lost and read back from ClickHouse, where the same events are.
 */
export class RealtimeRing {
  readonly #sites = new Map<string, SiteRing>()
  readonly #presences: Presences
  readonly #sitesMax: number
  #sweptMillis = 0
  #cleared = 0
  #rings = 0

  constructor(limits: RealtimeLimits) {
    this.#presences = new Presences(limits.presencesMax)
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
    return (this.#sites.get(site) ?? this.#newRing()).snapshot(nowMillis)
  }

  /** The ring's counts, for /metrics. */
  stats(): { readonly sites: number; readonly presences: number } {
    return { sites: this.#sites.size, presences: this.#presences.used }
  }

  #ringOf(site: string): SiteRing {
    const known = this.#sites.get(site)
    if (known !== undefined) return known
    if (this.#sites.size >= this.#sitesMax) this.#forgetQuietest()
    const ring = this.#newRing()
    this.#sites.set(site, ring)
    return ring
  }

  #newRing(): SiteRing {
    return new SiteRing(this.#presences, ++this.#rings)
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
  /** visitors, and pages of a visitor, in the last five minutes; 36 and 16 bytes each, with room for up to twice as many */
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

/** Of one visitor in five minutes; more than a person reads. */
const pagesMax = 100

class SiteRing {
  newestSecond = 0
  /** of all sites */
  readonly #presences: Presences
  /** page views of second s at s modulo its length; only the last `historySeconds` of them hold */
  readonly #pageviews = new Uint32Array(historySeconds)
  /** about in the order in which they were last seen */
  readonly #visitors: PresenceList

  constructor(presences: Presences, number: number) {
    this.#presences = presences
    this.#visitors = { number, oldest: 0, newest: 0 }
  }

  add(event: RealtimeEvent, nowMillis: number): void {
    const second = Math.floor(event.ts / 1000)
    this.#advance(Math.max(second, Math.floor(nowMillis / 1000)))
    if (second <= this.newestSecond - historySeconds) return
    if (event.kind === "pageview") this.#pageviews[second % historySeconds]!++
    if (second <= this.newestSecond - activeSeconds) return
    const row = this.#see(event.visitor, second)
    if (row !== 0 && event.kind === "pageview") this.#seePage(event, row, second)
  }

  snapshot(nowMillis: number): RealtimeSnapshot {
    const now = Math.floor(nowMillis / 1000)
    this.#advance(now)
    const perMinute = Array.from({ length: minutes }, (_, index) => {
      const minute = minutes - 1 - index
      return { minute, pageviews: this.#pageviewsBetween(now - 60 * (minute + 1), now - 60 * minute) }
    })
    let visitors = 0
    for (const row of this.#presences.of(this.#visitors))
      if (this.#isActive(this.#presences.secondOf(row))) visitors++
    return {
      visitors,
      pageviews: this.#pageviewsBetween(now - activeSeconds, this.newestSecond),
      pages: this.#busiestPages(),
      perMinute
    }
  }

  clear(): void {
    while (this.#visitors.oldest !== 0) this.#forgetOldest()
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
    const visitors = this.#visitors
    while (visitors.oldest !== 0 && this.#presences.secondOf(visitors.oldest) <= second - activeSeconds)
      this.#forgetOldest()
  }

  #isActive(second: number): boolean {
    return second > this.newestSecond - activeSeconds
  }

  /** 0 where there is no room for another visitor. */
  #see(visitor: bigint, second: number): number {
    const halves = halvesOf(visitor)
    const low = halves[0] as number
    const high = halves[1] as number
    const known = this.#presences.find(this.#visitors, low, high)
    if (known === 0) return this.#makeRoom() ? this.#presences.add(this.#visitors, low, high, second) : 0
    this.#presences.touch(this.#visitors, known, second)
    return known
  }

  #seePage({ path }: RealtimeEvent, row: number, second: number): void {
    const presences = this.#presences
    const page = presences.findPage(row, path, this.newestSecond - activeSeconds)
    if (page > 0) return presences.touchPage(page, second)
    if (page < 0) return presences.setPage(-page, path, second)
    if (presences.pagesOf(row) >= pagesMax) return
    // Making room may cost this very visitor its place.
    const isOldest = this.#visitors.oldest === row
    if (presences.isFull && isOldest) this.#forgetOldest()
    else if (this.#makeRoom()) presences.addPage(row, path, second)
  }

  /** For one more presence; this site's own oldest goes where there are too many. False: it has none to give up. */
  #makeRoom(): boolean {
    if (!this.#presences.isFull) return true
    if (this.#visitors.oldest === 0) return false
    this.#forgetOldest()
    return true
  }

  #forgetOldest(): void {
    this.#presences.remove(this.#visitors, this.#visitors.oldest)
  }

  #busiestPages(): RealtimeSnapshot["pages"] {
    const visitorsByPath = new Map<string, number>()
    for (const row of this.#presences.of(this.#visitors)) {
      this.#presences.eachPage(row, (path, second) => {
        if (this.#isActive(second)) visitorsByPath.set(path, (visitorsByPath.get(path) ?? 0) + 1)
      })
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
