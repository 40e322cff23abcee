import type { VisitEvent } from "./VisitEvent.ts"
import { packedEmpty } from "./VisitEvent.ts"

/** A gap of more than this starts a new visit. Source: spec 2, States and transitions. */
export const visitGapMillis = 30 * 60_000

/** How long after its page view an engage ping still counts. Source: decisions, Analytics. */
export const engageWithinMillis = 24 * 3_600_000

/**
 * Page views and events in one row. A longer visit goes on in a further part, so that no row grows without bound and a
 * visit of a million events (a caller that sends no `ip`) costs each flush no more than a thousand of them.
 */
export const partEventsMax = 1_000

/** Page views of a visitor-day that engage pings still find: the latest ones. */
export const viewsMax = 20_000

/** A visit, or a part of a very long one, as it stands after the events folded so far. Times are epoch seconds. */
export interface Visit {
  /** time of its first event */
  readonly start: number
  /** 0; for what continues a visit that was too long for one row: 1, 2, … */
  readonly part: number
  /** the visitor's last activity of that day before this row; 0 when there was none */
  readonly previousLast: number
  /** whether it is all of the visitor's day */
  readonly single: boolean
  readonly hostname: string
  readonly attributes: string
  /** seconds from `start` to the last page view or event */
  readonly lengthSeconds: number
  readonly engagedMillis: number
  readonly pages: ReadonlyArray<string>
  /** seconds from `start`, as many as pages */
  readonly pageSeconds: ReadonlyArray<number>
  readonly goals: ReadonlyArray<string>
  readonly goalSeconds: ReadonlyArray<number>
  readonly goalPages: ReadonlyArray<string>
}

type Growing<T> = { -readonly [K in keyof T]: T[K] extends ReadonlyArray<infer Item> ? Array<Item> : T[K] }

interface PageView {
  readonly visit: Growing<Visit>
  readonly ts: number
  creditedMillis: number
}

/**
 * The visits of one visitor on one UTC day (a visitor's identity ends at midnight UTC, and with it the visit), folded
 * from their events in the order of time. The result depends on the events alone, not on how they were handed over:
 * whoever finds that `isLate` folds all of that day's events again.
 */
export class VisitorDay {
  #rows = 0
  #current: Growing<Visit> | undefined
  #lastTs = Number.NEGATIVE_INFINITY
  /** up to when the current visit counts as active, engage pings included */
  #aliveTs = 0
  readonly #views = new Map<string, PageView>()
  readonly #changed = new Set<Growing<Visit>>()

  /** An event before one that was folded already: the day has to be folded anew. */
  isLate(event: VisitEvent): boolean {
    return event.ts < this.#lastTs
  }

  /** Whether an engage ping with this id would find its page view. */
  hasView(pv: string): boolean {
    return this.#views.has(pv)
  }

  push(event: VisitEvent): void {
    this.#lastTs = event.ts
    if (event.kind === "engage") this.#engage(event)
    else this.#visit(event)
  }

  /** Pings held for matching and rows in memory, as a measure of size. */
  get weight(): number {
    return 4 + this.#views.size + (this.#current?.pages.length ?? 0)
  }

  /** What changed since the last call, as absolute rows. */
  take(): ReadonlyArray<Visit> {
    const single = this.#rows === 1
    for (const visit of this.#changed) visit.single = single
    const changed = [...this.#changed]
    this.#changed.clear()
    return changed
  }

  #visit(event: VisitEvent): void {
    const visit = this.#rowFor(event)
    const second = seconds(event.ts) - visit.start
    visit.lengthSeconds = second
    if (event.kind === "pageview") {
      visit.pages.push(event.path)
      visit.pageSeconds.push(second)
      if (event.pv !== packedEmpty) this.#remember(event, visit)
    } else {
      visit.goals.push(event.name)
      visit.goalSeconds.push(second)
      visit.goalPages.push(event.path)
    }
    this.#aliveTs = event.ts
    this.#changed.add(visit)
  }

  #rowFor(event: VisitEvent): Growing<Visit> {
    const current = this.#current
    if (current === undefined) return this.#open(event, 0, event)
    if (event.ts - this.#aliveTs > visitGapMillis) return this.#open(event, 0, event)
    if (current.pages.length + current.goals.length < partEventsMax) return current
    return this.#open(event, current.part + 1, current)
  }

  #open(
    event: VisitEvent,
    part: number,
    first: { readonly hostname: string; readonly attributes: string }
  ): Growing<Visit> {
    const before = this.#current
    // The visitor's first row of the day was marked as the only one.
    if (before !== undefined && this.#rows === 1) this.#changed.add(before)
    const visit: Growing<Visit> = {
      start: seconds(event.ts),
      part,
      previousLast: before === undefined ? 0 : before.start + before.lengthSeconds,
      single: false,
      hostname: first.hostname,
      attributes: first.attributes,
      lengthSeconds: 0,
      engagedMillis: 0,
      pages: [],
      pageSeconds: [],
      goals: [],
      goalSeconds: [],
      goalPages: []
    }
    this.#rows++
    this.#current = visit
    return visit
  }

  #remember(event: VisitEvent, visit: Growing<Visit>): void {
    // A page view that repeats an id takes its place, at the end of the line.
    this.#views.delete(event.pv)
    this.#views.set(event.pv, { visit, ts: event.ts, creditedMillis: 0 })
    if (this.#views.size <= viewsMax) return
    const oldest = this.#views.keys().next()
    if (oldest.done !== true) this.#views.delete(oldest.value)
  }

  /** Adds visible time to the page view's visit: never more than has passed since the page view. */
  #engage(event: VisitEvent): void {
    const view = event.pv === packedEmpty ? undefined : this.#views.get(event.pv)
    if (view === undefined) return
    const elapsedMillis = event.ts - view.ts
    if (elapsedMillis > engageWithinMillis) return
    const creditMillis = Math.max(0, Math.min(event.engagedMillis, elapsedMillis - view.creditedMillis))
    view.creditedMillis += creditMillis
    view.visit.engagedMillis += creditMillis
    if (creditMillis > 0) this.#changed.add(view.visit)
    // The visitor is still there: that keeps an open visit open, but does not reopen one that has ended.
    if (event.ts - this.#aliveTs <= visitGapMillis) this.#aliveTs = event.ts
  }
}

const seconds = (millis: number): number => Math.floor(millis / 1000)

/** The visits of a visitor-day from all of its events, which may come in any order. */
export const sessionise = (events: ReadonlyArray<VisitEvent>): ReadonlyArray<Visit> => {
  const day = new VisitorDay()
  for (const event of inOrder(events)) day.push(event)
  return day.take()
}

/** By time; what happened in the same millisecond stays in the order of arrival. */
export const inOrder = <Event extends VisitEvent>(events: ReadonlyArray<Event>): ReadonlyArray<Event> =>
  isInOrder(events) ? events : events.toSorted((left, right) => left.ts - right.ts)

const isInOrder = (events: ReadonlyArray<VisitEvent>): boolean => {
  for (let index = 1; index < events.length; index++) {
    if ((events[index]?.ts ?? 0) < (events[index - 1]?.ts ?? 0)) return false
  }
  return true
}
