import { BoundedCache } from "./BoundedCache.ts"
import type { VisitEvent } from "./VisitEvent.ts"
import { packedEmpty } from "./VisitEvent.ts"

/** A gap of more than this starts a new visit. Source: contract/analytics#visits. */
export const visitGapMillis = 30 * 60_000

/** How long after its page view an engage ping still counts. Source: contract/analytics#visits. */
export const engageWithinMillis = 24 * 3_600_000

/**
 * Page views and events in one row. A longer visit goes on in a further part, so that no row grows without bound and a
 * visit of a million events (a caller that sends no `ip`) costs each flush no more than a thousand of them.
 */
export const partEventsMax = 1_000

/**
 * A visit goes on in a further row with every hour since its start, too. So who asks what happened up to an edge of time
 * need look into no row but those that began within the hour before.
 */
export const partSeconds = 3_600

/** Paths that a visitor-day remembers, to tell whether a page view is the first of its page. */
export const pathsMax = 20_000

/** Page views of a visitor-day that engage pings still find: the latest ones. */
const viewsMax = 20_000

/** A visit, or a part of a very long one, as it stands after the events folded so far. Times are epoch seconds. */
export interface Visit {
  /** time of its first event */
  readonly start: number
  /** 0; for what continues a visit that was too long for one row: 1, 2, … */
  readonly part: number
  /** 0 when the visit is this row alone; else the start of its first row, which all of its rows share */
  readonly visit: number
  /** whether it goes on in a further row */
  readonly more: boolean
  /** the visitor's last activity of that day before this row; 0 when there was none */
  readonly previousLast: number
  readonly hostname: string
  readonly attributes: string
  /** seconds from `start` to the last page view or event */
  readonly lengthSeconds: number
  /** visible time of the whole visit, in its first row; 0 in the others */
  readonly engagedMillis: number
  readonly pages: ReadonlyArray<string>
  /** seconds from `start`, as many as pages */
  readonly pageSeconds: ReadonlyArray<number>
  /** of each page view, as many as pages */
  readonly pageNew: ReadonlyArray<PageNew>
  readonly goals: ReadonlyArray<string>
  readonly goalSeconds: ReadonlyArray<number>
  readonly goalPages: ReadonlyArray<string>
}

/** 1: the visitor's first view of that page on that day; 0: a later one; 2: not known, after `pathsMax` pages. */
type PageNew = 0 | 1 | 2

type Growing<T> = { -readonly [K in keyof T]: T[K] extends ReadonlyArray<infer Item> ? Array<Item> : T[K] }

/** Shared by all that have none: `grown` puts another list in its place. */
const nothing: Array<never> = []

/** So many are looked through one by one: that takes less time than a hash, and a quarter of the memory. */
const fewMax = 8

/** Lists up to this length take no more memory than their items; longer ones grow by half. */
const exactMax = 16

/** Attributes of visits, each text kept once. */
const sharedAttributes = new BoundedCache(20_000, (attributes: string) => attributes)

interface PageView {
  readonly pv: string
  /** the first row of its visit */
  readonly visit: Growing<Visit>
  readonly ts: number
  creditedMillis: number
}

/**
 * The visits of one visitor on one UTC day (a visitor's identity ends at midnight UTC, and with it the visit), folded
 * from their events in the order of time. The result depends on the events alone, not on the order in which they came:
 * a caller that finds it `isLate` folds all of that day's events again.
 */
export class VisitorDay {
  #current: Growing<Visit> | undefined
  /** the first row of the current visit */
  #first: Growing<Visit> | undefined
  #lastTs = Number.NEGATIVE_INFINITY
  /** up to when the current visit counts as active, engage pings included */
  #aliveTs = 0
  /** bytes, as its holder last counted them */
  heldBytes = 0
  /** in the order in which they came; a map once there are many */
  #fewViews: Array<PageView> = nothing
  #views: Map<string, PageView> | undefined
  /** the oldest of many, from call to call: a new iterator steps over every place given up at the map's front */
  #oldestViews: MapIterator<string> | undefined
  /** of a day with many pages or more than one row; before that they are those of its row */
  #paths: Set<string> | undefined
  /** each once */
  #changed: Array<Growing<Visit>> = nothing

  /** An event before one that was folded already: the day has to be folded anew. */
  isLate(event: VisitEvent): boolean {
    return event.ts < this.#lastTs
  }

  /** Whether an engage ping with this id would find its page view. */
  hasView(pv: string): boolean {
    return this.#viewOf(pv) !== undefined
  }

  push(event: VisitEvent): void {
    this.#lastTs = event.ts
    if (event.kind === "engage") this.#engage(event)
    else this.#visit(event)
  }

  /** About how many bytes of memory it takes: as measured, by what grows. */
  get bytes(): number {
    const listed = (this.#current?.pages.length ?? 0) + (this.#current?.goals.length ?? 0)
    const views = this.#views?.size ?? this.#fewViews.length
    return 700 + 70 * (views + (this.#paths?.size ?? 0) + listed)
  }

  /** The changes since the last call, as absolute rows. */
  take(): ReadonlyArray<Visit> {
    const changed = this.#changed
    this.#changed = nothing
    return changed
  }

  #visit(event: VisitEvent): void {
    const visit = this.#rowFor(event)
    const second = seconds(event.ts) - visit.start
    visit.lengthSeconds = second
    if (event.kind === "pageview") {
      const mark = this.#markOf(event.path, visit.pages)
      visit.pages = grown(visit.pages, event.path)
      visit.pageSeconds = grown(visit.pageSeconds, second)
      visit.pageNew = grown(visit.pageNew, mark)
      if (event.pv !== packedEmpty) this.#remember(event, this.#first ?? visit)
    } else {
      visit.goals = grown(visit.goals, event.name)
      visit.goalSeconds = grown(visit.goalSeconds, second)
      visit.goalPages = grown(visit.goalPages, event.path)
    }
    this.#aliveTs = event.ts
    this.#change(visit)
  }

  #change(visit: Growing<Visit>): void {
    if (this.#changed.at(-1) === visit || this.#changed.includes(visit)) return
    this.#changed = grown(this.#changed, visit)
  }

  /** `pages`: those of the current row so far */
  #markOf(path: string, pages: ReadonlyArray<string>): PageNew {
    if (this.#paths === undefined) {
      if (pages.length < fewMax) return pages.includes(path) ? 0 : 1
      this.#paths = new Set(pages)
    }
    if (this.#paths.has(path)) return 0
    if (this.#paths.size >= pathsMax) return 2
    this.#paths.add(path)
    return 1
  }

  #rowFor(event: VisitEvent): Growing<Visit> {
    const current = this.#current
    if (current === undefined || event.ts - this.#aliveTs > visitGapMillis) {
      this.#first = this.#open(event, 0, 0, event)
      return this.#first
    }
    const first = this.#first ?? current
    const isFull = current.pages.length + current.goals.length >= partEventsMax
    const isSameHour = hourOf(seconds(event.ts), first) === hourOf(current.start, first)
    return isSameHour && !isFull ? current : this.#goOn(event, current, first)
  }

  /** A further row of the current visit. */
  #goOn(event: VisitEvent, current: Growing<Visit>, first: Growing<Visit>): Growing<Visit> {
    current.more = true
    first.visit = first.start
    this.#change(current)
    this.#change(first)
    return this.#open(event, current.part + 1, first.start, first)
  }

  #open(
    event: VisitEvent,
    part: number,
    visitStart: number,
    first: { readonly hostname: string; readonly attributes: string }
  ): Growing<Visit> {
    const before = this.#current
    if (before !== undefined) this.#paths ??= new Set(before.pages)
    const visit: Growing<Visit> = {
      start: seconds(event.ts),
      part,
      visit: visitStart,
      more: false,
      previousLast: before === undefined ? 0 : before.start + before.lengthSeconds,
      hostname: first.hostname,
      attributes: sharedAttributes.get(first.attributes),
      lengthSeconds: 0,
      engagedMillis: 0,
      pages: nothing,
      pageSeconds: nothing,
      pageNew: nothing,
      goals: nothing,
      goalSeconds: nothing,
      goalPages: nothing
    }
    this.#current = visit
    return visit
  }

  /** A page view that repeats an id takes its place, at the end of the line. */
  #remember({ pv, ts }: VisitEvent, visit: Growing<Visit>): void {
    const view = { pv, visit, ts, creditedMillis: 0 }
    if (this.#views === undefined) {
      const known = this.#fewViews.findIndex((one) => one.pv === pv)
      if (known >= 0) this.#fewViews.splice(known, 1)
      this.#fewViews = grown(this.#fewViews, view)
      if (this.#fewViews.length <= fewMax) return
      this.#views = new Map(this.#fewViews.map((one) => [one.pv, one]))
      this.#fewViews = nothing
      return
    }
    this.#views.delete(pv)
    this.#views.set(pv, view)
    if (this.#views.size <= viewsMax) return
    const oldest = (this.#oldestViews ??= this.#views.keys()).next()
    if (oldest.done !== true) this.#views.delete(oldest.value)
  }

  #viewOf(pv: string): PageView | undefined {
    return this.#views === undefined ? this.#fewViews.find((view) => view.pv === pv) : this.#views.get(pv)
  }

  /** Adds visible time to the page view's visit: never more than has passed since the page view. */
  #engage(event: VisitEvent): void {
    const view = event.pv === packedEmpty ? undefined : this.#viewOf(event.pv)
    if (view === undefined) return
    const elapsedMillis = event.ts - view.ts
    if (elapsedMillis > engageWithinMillis) return
    const creditMillis = Math.max(0, Math.min(event.engagedMillis, elapsedMillis - view.creditedMillis))
    view.creditedMillis += creditMillis
    view.visit.engagedMillis += creditMillis
    if (creditMillis > 0) this.#change(view.visit)
    // The visitor is still there: that keeps an open visit open, but does not reopen one that has ended.
    if (event.ts - this.#aliveTs <= visitGapMillis) this.#aliveTs = event.ts
  }
}

/**
 * The list with one more item. A short one is made anew with its exact length: `push` would make room for seventeen, in each
 * of a visit's lists. Only a literal and `concat` give no more places than items.
 */
const grown = <A>(list: Array<A>, item: A): Array<A> => {
  switch (list.length) {
    case 0:
      return [item]
    case 1:
      return [list[0] as A, item]
    case 2:
      return [list[0] as A, list[1] as A, item]
    case 3:
      return [list[0] as A, list[1] as A, list[2] as A, item]
  }
  if (list.length < exactMax) return list.concat([item])
  list.push(item)
  return list
}

/** Hours since the start of a visit. */
const hourOf = (second: number, first: Visit): number => Math.floor((second - first.start) / partSeconds)

const seconds = (millis: number): number => Math.floor(millis / 1000)

/** By time; events of the same millisecond stay in the order of arrival. */
export const inOrder = <Event extends VisitEvent>(events: ReadonlyArray<Event>): ReadonlyArray<Event> =>
  isInOrder(events) ? events : events.toSorted((left, right) => left.ts - right.ts)

const isInOrder = (events: ReadonlyArray<VisitEvent>): boolean => {
  for (let index = 1; index < events.length; index++) {
    if ((events[index]?.ts ?? 0) < (events[index - 1]?.ts ?? 0)) return false
  }
  return true
}
