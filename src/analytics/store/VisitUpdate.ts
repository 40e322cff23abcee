import { Effect } from "effect"
import {
  ResidentDays,
  type ResidentLimits,
  siteDayOf,
  type VisitorKey
} from "#streams/analytics/ResidentDays.ts"
import { daysMax, SeenVisitors } from "#streams/analytics/SeenVisitors.ts"
import { packedEmpty, type OwnedVisitEvent } from "#streams/analytics/VisitEvent.ts"
import { VisitorMap } from "#streams/analytics/VisitorMap.ts"
import { inOrder, VisitorDay } from "#streams/analytics/Visits.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { siteDaysWithEvents, type StoreError } from "./EventStore.ts"
import { monthGroups } from "./MonthGroups.ts"
import { visitorDaysOf, type VisitorDays } from "./VisitorDays.ts"
import { reconcile, type Reconciled } from "./VisitReconcile.ts"
import { visitorDayOf } from "./VisitStore.ts"
import { VisitWriter } from "./VisitWriter.ts"

/**
 * In each generation the open visits of some 140,000 visitors with ten page views. With 160 MiB the `ingest` bench, which
 * has as many, folded most days anew in every batch: 8,800 events a second instead of 26,000.
 * A visitor takes 0.9 KB, and most never come again: they are let go of after 10 to 20 minutes, and the few who come back
 * later are folded anew. With half an hour for a generation memory grew for an hour under a steady load.
 */
const residentLimits: ResidentLimits = { bytesMax: 384 * 1024 * 1024, generationMillis: 10 * 60_000 }

/** History is mostly in order: a day that an import has left does not come again. */
const importedLimits: ResidentLimits = { bytesMax: 64 * 1024 * 1024, generationMillis: 10 * 60_000 }

/** The source of events. Each has a cache of its own. */
export type Lane = "live" | "imports"

interface Touched {
  readonly key: VisitorKey
  readonly day: number
  readonly events: Array<OwnedVisitEvent>
}

/**
 * Brings visits up to date with a batch of events. A visitor who is in memory, or certainly new, goes on from there;
 * all others, and those whose events come late, are folded again from all events of their day. Either way the rows are
 * what the day's events say, so a batch that is repeated, wholly or in part, changes nothing.
 */
export class VisitUpdate {
  readonly #clickhouse: ClickHouseService
  readonly #writer: VisitWriter
  readonly #seen: Readonly<Record<Lane, SeenVisitors>>
  /** a visitor-day is in one of them at most */
  readonly #residents: Readonly<Record<Lane, ResidentDays>>
  /** site-days that had no events before those of the last `meet` */
  #empty: ReadonlySet<string> = new Set()
  #recomputed = 0

  constructor(clickhouse: ClickHouseService, nowMillis: number, limits = residentLimits, fence?: string) {
    this.#clickhouse = clickhouse
    this.#writer = new VisitWriter(clickhouse, fence)
    this.#seen = { live: new SeenVisitors(), imports: new SeenVisitors() }
    this.#residents = {
      live: new ResidentDays(limits, nowMillis),
      imports: new ResidentDays(importedLimits, nowMillis)
    }
  }

  /** rows that were written */
  get written(): number {
    return this.#writer.written
  }

  /** visitor-days folded anew from `events` */
  get recomputed(): number {
    return this.#recomputed
  }

  /** visitor-days in memory */
  get resident(): number {
    return this.#residents.live.size + this.#residents.imports.size
  }

  /** To be called before the events are in the store: whose day has just begun need not be looked up there. */
  meet(events: ReadonlyArray<OwnedVisitEvent>, lane: Lane): Effect.Effect<void, StoreError> {
    const seen = this.#seen[lane]
    const unmet = new Map<string, OwnedVisitEvent>()
    this.#empty = new Set()
    for (const event of events) if (seen.isUnmet(event)) unmet.set(siteDayOf(event), event)
    if (unmet.size === 0) return Effect.void
    return siteDaysWithEvents(this.#clickhouse, [...unmet.values()]).pipe(
      Effect.map((known) => {
        this.#empty = new Set(Array.from(unmet.keys()).filter((siteDay) => !known.has(siteDay)))
        const kept = keptDays([...unmet.values()], lane)
        for (const [siteDay, event] of unmet)
          if (kept.has(event.day)) seen.meet(event, this.#empty.has(siteDay))
      })
    )
  }

  /**
   * Engage pings whose page view is not known here to be their sender's: after midnight, or from another address, the
   * same person has another identity. To be called before the events are applied.
   */
  strangers(events: ReadonlyArray<OwnedVisitEvent>): ReadonlyArray<OwnedVisitEvent> {
    const pings = events.filter(({ kind, pv }) => kind === "engage" && pv !== packedEmpty)
    if (pings.length === 0) return pings
    const placeOfView = (event: OwnedVisitEvent): string => `${visitorDayOf(event)}/${event.pv}`
    const views = new Set(events.filter(({ kind }) => kind === "pageview").map(placeOfView))
    return pings.filter(
      (ping) => !views.has(placeOfView(ping)) && this.#residentDay(ping)?.hasView(ping.pv) !== true
    )
  }

  /**
   * Writes the rows that the events change, once the events are in the store. A failed write is forgotten here too, and
   * read from the store the next time. `isRepeated`: the store may know these events or later ones already, so that
   * facts learnt of them say nothing.
   */
  apply(
    events: ReadonlyArray<OwnedVisitEvent>,
    how: { readonly lane: Lane; readonly isRepeated: boolean; readonly nowMillis: number }
  ): Effect.Effect<void, StoreError> {
    return Effect.suspend(() => {
      const touched = byVisitor(events)
      return this.#write(touched, how).pipe(
        Effect.onError(() =>
          Effect.sync(() => {
            for (const { key } of touched) this.#forget(key)
          })
        )
      )
    })
  }

  /** Makes the rows of some visitor-days what their events say, or only compares them. */
  rebuild(where: VisitorDays, isCheck: boolean): Effect.Effect<Reconciled, StoreError> {
    if (!isCheck) this.#writer.forgetNames()
    const reconciled = reconcile({
      clickhouse: this.#clickhouse,
      where,
      writer: isCheck ? undefined : this.#writer,
      onDay: (key, _, isRight) => {
        if (!isRight && !isCheck) this.#forget(key)
      }
    })
    return Effect.andThen(this.#writer.begin, reconciled)
  }

  /** Writes no row, and fails where any row would. */
  get check(): Effect.Effect<void, StoreError> {
    return this.#writer.check
  }

  /** Some months after the other: rows read back and written have a partition for each. */
  #write(
    touched: ReadonlyArray<Touched>,
    {
      isRepeated,
      lane,
      nowMillis
    }: { readonly lane: Lane; readonly isRepeated: boolean; readonly nowMillis: number }
  ) {
    return Effect.gen({ self: this }, function* () {
      yield* this.#writer.begin
      for (const resident of Object.values(this.#residents)) resident.age(nowMillis)
      for (const group of monthGroups(touched)) yield* this.#writeMonths(group, lane, isRepeated)
    })
  }

  #writeMonths(touched: ReadonlyArray<Touched>, lane: Lane, isRepeated: boolean) {
    return Effect.gen({ self: this }, function* () {
      const unknown = touched.filter((one) => isRepeated || !this.#continue(one, lane))
      this.#recomputed += unknown.length
      for (const where of visitorDaysOf(unknown.map(({ key }) => key))) {
        yield* reconcile({
          clickhouse: this.#clickhouse,
          where,
          writer: this.#writer,
          onDay: (key, day) => {
            this.#add(key)
            if (day !== undefined) this.#keep(key, day, lane)
          }
        })
      }
      yield* this.#writer.flush
    })
  }

  /** false: the visitor's day is not in memory, or has an event that was late. */
  #continue({ events, key }: Touched, lane: Lane): boolean {
    const isNew = (): boolean => this.#empty.has(siteDayOf(key)) || this.#seen[lane].isNew(key)
    const day = this.#residentDay(key) ?? (isNew() ? new VisitorDay() : undefined)
    this.#add(key)
    const ordered = inOrder(events)
    const [first] = ordered
    if (day === undefined || first === undefined || day.isLate(first)) return false
    for (const event of ordered) day.push(event)
    for (const visit of day.take()) this.#writer.add(key, visit)
    this.#keep(key, day, lane)
    return true
  }

  #residentDay(key: VisitorKey): VisitorDay | undefined {
    return this.#residents.live.get(key) ?? this.#residents.imports.get(key)
  }

  #keep(key: VisitorKey, day: VisitorDay, lane: Lane): void {
    this.#residents[lane === "live" ? "imports" : "live"].forget(key)
    this.#residents[lane].set(key, day)
  }

  #forget(key: VisitorKey): void {
    for (const resident of Object.values(this.#residents)) resident.forget(key)
  }

  /** A filter that is trusted for a day knows the visitors of both lanes. */
  #add(key: VisitorKey): void {
    for (const seen of Object.values(this.#seen)) seen.add(key)
  }
}

/** The days that get a filter. Those of history that spans more would push each other out of it, for nothing. */
const keptDays = (events: ReadonlyArray<OwnedVisitEvent>, lane: Lane): ReadonlySet<number> => {
  const days = Array.from(new Set(events.map(({ day }) => day)))
  if (lane === "imports" && days.length > daysMax) return new Set()
  return new Set(days.toSorted((left, right) => right - left).slice(0, daysMax))
}

const byVisitor = (events: ReadonlyArray<OwnedVisitEvent>): ReadonlyArray<Touched> => {
  const siteDays = new Map<string, VisitorMap<Touched>>()
  const touched: Array<Touched> = []
  for (const event of events) {
    const siteDay = siteDayOf(event)
    let visitors = siteDays.get(siteDay)
    if (visitors === undefined) siteDays.set(siteDay, (visitors = new VisitorMap()))
    const known = visitors.get(event.visitor)
    if (known !== undefined) {
      known.events.push(event)
      continue
    }
    const { day, site, visitor } = event
    const one = { key: { site, day, visitor }, day, events: [event] }
    visitors.set(visitor, one)
    touched.push(one)
  }
  return touched
}
