import { siteDayOf, type VisitorKey } from "./ResidentDays.ts"
import { halvesOf } from "./VisitorMap.ts"

/** 8 MiB a day: a million visitors are mistaken for known ones at 1 in 80,000, ten million at 1 in 25. */
const bitsPerDay = 2 ** 26
const probes = 4

/** Days with a filter at once: today, yesterday's late comers, and an import walking through the past. */
export const daysMax = 4

interface Day {
  readonly bits: Uint32Array
  /** by site-day: whether it had no events when this process first met it, so that the filter knows all its visitors */
  readonly isWhole: Map<string, boolean>
}

/**
 * Tells visitors who are certainly new today, for whom the store need not be asked: a Bloom filter for each UTC day,
 * trusted for the sites whose day it has seen from its beginning. A day that falls out and comes back is met anew.
 */
export class SeenVisitors {
  readonly #days = new Map<number, Day>()

  /** Whether the store has to be asked if the site-day has events, see `meet`. */
  isUnmet(key: { readonly site: string; readonly day: number }): boolean {
    return this.#days.get(key.day)?.isWhole.has(siteDayOf(key)) !== true
  }

  meet(key: { readonly site: string; readonly day: number }, isEmpty: boolean): void {
    const found = this.#days.get(key.day)
    const day = found ?? { bits: new Uint32Array(bitsPerDay / 32), isWhole: new Map() }
    // The day met last is the last to fall out.
    this.#days.delete(key.day)
    this.#days.set(key.day, day)
    day.isWhole.set(siteDayOf(key), isEmpty)
    const oldest = this.#days.keys().next()
    if (this.#days.size > daysMax && oldest.done !== true) this.#days.delete(oldest.value)
  }

  /** true: this visitor has had no event before. false: perhaps. */
  isNew(key: VisitorKey): boolean {
    const day = this.#days.get(key.day)
    if (day?.isWhole.get(siteDayOf(key)) !== true) return false
    const [first, step] = hashesOf(key)
    for (let probe = 0; probe < probes; probe++) {
      const bit = (first + probe * step) % bitsPerDay
      if (((day.bits[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return true
    }
    return false
  }

  add(key: VisitorKey): void {
    const day = this.#days.get(key.day)
    if (day === undefined) return
    const [first, step] = hashesOf(key)
    for (let probe = 0; probe < probes; probe++) {
      const bit = (first + probe * step) % bitsPerDay
      day.bits[bit >>> 5] = (day.bits[bit >>> 5] ?? 0) | (1 << (bit & 31))
    }
  }
}

let lastSite = ""
let lastSiteHash = 0x811c9dc5

/** Events come in runs of one site: its hash is remembered. */
const hashOfSite = (site: string): number => {
  if (site === lastSite) return lastSiteHash
  let hash = 0x811c9dc5
  for (let index = 0; index < site.length; index++) {
    hash = Math.imul(hash ^ site.charCodeAt(index), 0x01000193)
  }
  lastSite = site
  lastSiteHash = hash
  return hash
}

/** The visitor is a keyed hash already; its two halves are as good as two hashes. The site is mixed in all the same. */
const hashesOf = (key: VisitorKey): readonly [number, number] => {
  const halves = halvesOf(key.visitor)
  return [((halves[0] as number) ^ hashOfSite(key.site)) >>> 0, ((halves[1] as number) | 1) >>> 0]
}
