import type { VisitorDay } from "./Visits.ts"

/** Whose visits: one identity of one site on its UTC day (days since 1970-01-01). */
export interface VisitorKey {
  readonly site: string
  readonly day: number
  readonly visitor: bigint
}

export interface ResidentLimits {
  /** page views and visitors held, as `VisitorDay.weight` counts them, in each of two generations */
  readonly weightMax: number
  /** a generation lasts this long: what was not touched for one to two of these is let go */
  readonly generationMillis: number
}

/**
 * The visitor-days in memory, which are those with a visit that may still be open. Two generations: what is touched
 * moves to the young one; when that is full or half an hour old it becomes the old one, and the old one is dropped
 * whole. What was dropped can always be folded again from `events`.
 */
export class ResidentDays {
  readonly #limits: ResidentLimits
  #young = new Map<string, Map<bigint, VisitorDay>>()
  #old = new Map<string, Map<bigint, VisitorDay>>()
  #weight = 0
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
    const siteDay = siteDayOf(key)
    let visitors = this.#young.get(siteDay)
    if (visitors === undefined) this.#young.set(siteDay, (visitors = new Map()))
    if (!visitors.has(key.visitor)) this.#weight += day.weight
    visitors.set(key.visitor, day)
    this.#old.get(siteDay)?.delete(key.visitor)
  }

  forget(key: VisitorKey): void {
    const siteDay = siteDayOf(key)
    this.#young.get(siteDay)?.delete(key.visitor)
    this.#old.get(siteDay)?.delete(key.visitor)
  }

  /** To be called between batches, with a monotonic clock. */
  turn(nowMillis: number): void {
    const isDue = nowMillis - this.#turnedAtMillis >= this.#limits.generationMillis
    if (!isDue && this.#weight < this.#limits.weightMax) return
    this.#old = this.#young
    this.#young = new Map()
    this.#weight = 0
    this.#turnedAtMillis = nowMillis
  }

  get size(): number {
    return sizeOf(this.#young) + sizeOf(this.#old)
  }
}

export const siteDayOf = (key: { readonly site: string; readonly day: number }): string =>
  `${key.site}/${key.day}`

const sizeOf = (generation: ReadonlyMap<string, ReadonlyMap<bigint, VisitorDay>>): number => {
  let size = 0
  for (const visitors of generation.values()) size += visitors.size
  return size
}
