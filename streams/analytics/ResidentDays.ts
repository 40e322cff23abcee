import { VisitorMap } from "./VisitorMap.ts"
import type { VisitorDay } from "./Visits.ts"

/** The owner of visits: one identity of one site on its UTC day (days since 1970-01-01). */
export interface VisitorKey {
  readonly site: string
  readonly day: number
  readonly visitor: bigint
}

export interface ResidentLimits {
  /** about how much memory each of two generations may take, as `VisitorDay.bytes` has it */
  readonly bytesMax: number
  /** a generation lasts this long: entries untouched for one to two of these are dropped */
  readonly generationMillis: number
}

type Generation = Map<string, VisitorMap<VisitorDay>>

/**
 * The visitor-days in memory, which are those with a visit that may still be open. Two generations: a touched one moves
 * to the young one; when that is full or has lasted its time it becomes the old one, and the old one is dropped whole.
 * Dropped ones can always be folded again from `events`.
 */
export class ResidentDays {
  readonly #limits: ResidentLimits
  #young: Generation = new Map()
  #old: Generation = new Map()
  #youngBytes = 0
  #turnedAtMillis: number

  constructor(limits: ResidentLimits, nowMillis: number) {
    this.#limits = limits
    this.#turnedAtMillis = nowMillis
  }

  get(key: VisitorKey): VisitorDay | undefined {
    const siteDay = siteDayOf(key)
    return this.#young.get(siteDay)?.get(key.visitor) ?? this.#old.get(siteDay)?.get(key.visitor)
  }

  /** Keeps it, as touched. */
  set(key: VisitorKey, day: VisitorDay): void {
    if (this.#youngBytes >= this.#limits.bytesMax) this.#turn()
    const siteDay = siteDayOf(key)
    let visitors = this.#young.get(siteDay)
    if (visitors === undefined) this.#young.set(siteDay, (visitors = new VisitorMap()))
    const before = visitors.get(key.visitor)
    this.#youngBytes -= before?.heldBytes ?? 0
    day.heldBytes = day.bytes
    this.#youngBytes += day.heldBytes
    if (before !== day) visitors.set(key.visitor, day)
    // One that is young already was taken out of the old ones then.
    if (before === undefined) this.#old.get(siteDay)?.delete(key.visitor)
  }

  forget(key: VisitorKey): void {
    const siteDay = siteDayOf(key)
    this.#youngBytes -= this.#young.get(siteDay)?.get(key.visitor)?.heldBytes ?? 0
    this.#young.get(siteDay)?.delete(key.visitor)
    this.#old.get(siteDay)?.delete(key.visitor)
  }

  /** Lets go of what has not been touched for long; to be called now and then, with a monotonic clock. */
  age(nowMillis: number): void {
    if (nowMillis - this.#turnedAtMillis < this.#limits.generationMillis) return
    this.#turnedAtMillis = nowMillis
    this.#turn()
  }

  #turn(): void {
    this.#old = this.#young
    this.#young = new Map()
    this.#youngBytes = 0
  }

  /** visitor-days held */
  get size(): number {
    return sizeOf(this.#young) + sizeOf(this.#old)
  }
}

let lastSite = ""
let lastDay = -1
let lastSiteDay = ""

/** Keys come in runs of one site-day: its text, whose hash is known, is good for the next one. */
export const siteDayOf = ({ day, site }: { readonly site: string; readonly day: number }): string => {
  if (day === lastDay && site === lastSite) return lastSiteDay
  lastSite = site
  lastDay = day
  lastSiteDay = `${site}/${day}`
  return lastSiteDay
}

const sizeOf = (generation: Generation): number => {
  let size = 0
  for (const visitors of generation.values()) size += visitors.size
  return size
}
