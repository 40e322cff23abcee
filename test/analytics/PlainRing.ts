import type { RealtimeEvent } from "#actors/analytics/RealtimeRing.ts"

/**
 * Realtime figures of one site in plain lists, each looked through from the front: slow, and what the ring of rows (decision
 * 0007) has to agree with, also where there is no room for all. `max`: visitors and pages of them.
 */
export class PlainRing {
  readonly #max: number
  /** the one moved longest ago first */
  #presences: ReadonlyArray<Presence> = []
  #views: ReadonlyArray<number> = []
  #newest = 0
  #sweptMillis = 0

  constructor(max: number) {
    this.#max = max
  }

  get used(): number {
    return this.#presences.reduce((sum, { pages }) => sum + 1 + pages.size, 0)
  }

  add(event: RealtimeEvent, nowMillis: number): void {
    if (event.kind === "engage" || event.ts <= nowMillis - 1_800_000 || event.ts > nowMillis + 1000) return
    this.#take(event, nowMillis)
    if (nowMillis - this.#sweptMillis < 60_000) return
    this.#sweptMillis = nowMillis
    this.#expire()
  }

  #take({ kind, path, ts, visitor }: RealtimeEvent, nowMillis: number): void {
    const second = Math.floor(ts / 1000)
    this.#advance(Math.max(second, Math.floor(nowMillis / 1000)))
    if (second <= this.#newest - 1_800) return
    if (kind === "pageview") this.#views = [...this.#views, second]
    if (second <= this.#newest - 300) return
    const seen = this.#see(visitor, second)
    if (seen !== undefined && kind === "pageview") this.#seePage(seen, path, second)
  }

  snapshot(nowMillis: number) {
    const now = Math.floor(nowMillis / 1000)
    this.#advance(now)
    const active = this.#presences.filter((one) => this.#isActive(one.second))
    const onPages = this.#presences.flatMap(({ pages }) =>
      Array.from(pages).flatMap(([path, second]) => (this.#isActive(second) ? [path] : []))
    )
    const viewsWithin = (after: number, upTo: number) =>
      this.#views.filter((second) => second > after && second <= upTo && second > this.#newest - 1_800).length
    return {
      visitors: active.length,
      pageviews: viewsWithin(now - 300, this.#newest),
      pages: Array.from(
        Map.groupBy(onPages, (path) => path),
        ([path, all]) => ({ path, visitors: all.length })
      )
        .toSorted((a, b) => b.visitors - a.visitors || (a.path < b.path ? -1 : 1))
        .slice(0, 5),
      perMinute: Array.from({ length: 30 }, (_, index) => ({
        minute: 29 - index,
        pageviews: viewsWithin(now - 60 * (30 - index), now - 60 * (29 - index))
      }))
    }
  }

  #advance(second: number): void {
    if (second <= this.#newest) return
    this.#newest = second
    this.#expire()
  }

  #expire(): void {
    while (this.#presences[0] !== undefined && !this.#isActive(this.#presences[0].second)) this.#dropOldest()
  }

  #isActive(second: number): boolean {
    return second > this.#newest - 300
  }

  #dropOldest(): void {
    this.#presences = this.#presences.slice(1)
  }

  #see(visitor: bigint, second: number): Presence | undefined {
    const known = this.#presences.find((one) => one.visitor === visitor)
    if (known === undefined) {
      if (!this.#makeRoom()) return undefined
      const presence = { visitor, second, pages: new Map<string, number>() }
      this.#presences = [...this.#presences, presence]
      return presence
    }
    const isMoved = Math.floor(Math.max(second, known.second) / 15) > Math.floor(known.second / 15)
    known.second = Math.max(second, known.second)
    if (isMoved) this.#presences = [...this.#presences.filter((one) => one !== known), known]
    return known
  }

  #seePage(presence: Presence, path: string, second: number): void {
    const { pages } = presence
    const stale = Array.from(pages).find(([, at]) => !this.#isActive(at))
    if (pages.has(path)) pages.set(path, Math.max(second, pages.get(path) ?? 0))
    else if (stale !== undefined) {
      pages.delete(stale[0])
      pages.set(path, second)
    } else if (pages.size < 100 && this.#makeRoom() && this.#presences.includes(presence))
      pages.set(path, second)
  }

  #makeRoom(): boolean {
    if (this.used < this.#max) return true
    if (this.#presences.length === 0) return false
    this.#dropOldest()
    return true
  }
}

interface Presence {
  readonly visitor: bigint
  second: number
  readonly pages: Map<string, number>
}
