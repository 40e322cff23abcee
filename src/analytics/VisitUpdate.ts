import { Effect } from "effect"
import {
  ResidentDays,
  type ResidentLimits,
  siteDayOf,
  type VisitorKey
} from "#streams/analytics/ResidentDays.ts"
import { daysMax, SeenVisitors } from "#streams/analytics/SeenVisitors.ts"
import { packedEmpty, type OwnedVisitEvent } from "#streams/analytics/VisitEvent.ts"
import { inOrder, VisitorDay } from "#streams/analytics/Visits.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { siteDaysWithEvents, type StoreError } from "./EventStore.ts"
import { monthGroups } from "./MonthGroups.ts"
import { visitorDaysOf, type VisitorDays } from "./VisitorDays.ts"
import { reconcile, type Reconciled } from "./VisitReconcile.ts"
import { visitorDayOf } from "./VisitStore.ts"
import { VisitWriter } from "./VisitWriter.ts"

/**
 * In each generation the open visits of some 100,000 visitors with ten page views. With 160 MiB the `ingest` bench, which
 * has as many, folded most days anew in every batch: 8,800 events a second instead of 26,000.
 * A visitor takes 1.6 KB, and most never come again: they are let go of after 10 to 20 minutes, and the few who come back
 * later are folded anew. With half an hour for a generation memory grew for an hour under a steady load.
 */
const residentLimits: ResidentLimits = { bytesMax: 384 * 1024 * 1024, generationMillis: 10 * 60_000 }

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
  readonly #seen = new SeenVisitors()
  readonly #resident: ResidentDays
  /** site-days that had no events before those of the last `meet` */
  #empty: ReadonlySet<string> = new Set()
  #recomputed = 0

  constructor(clickhouse: ClickHouseService, nowMillis: number, limits = residentLimits, fence?: string) {
    this.#clickhouse = clickhouse
    this.#writer = new VisitWriter(clickhouse, fence)
    this.#resident = new ResidentDays(limits, nowMillis)
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
    return this.#resident.size
  }

  /** To be called before the events are in the store: whose day has just begun need not be looked up there. */
  meet(events: ReadonlyArray<OwnedVisitEvent>): Effect.Effect<void, StoreError> {
    const unmet = new Map<string, OwnedVisitEvent>()
    this.#empty = new Set()
    for (const event of events) if (this.#seen.isUnmet(event)) unmet.set(siteDayOf(event), event)
    if (unmet.size === 0) return Effect.void
    return siteDaysWithEvents(this.#clickhouse, [...unmet.values()]).pipe(
      Effect.map((known) => {
        this.#empty = new Set(Array.from(unmet.keys()).filter((siteDay) => !known.has(siteDay)))
        const kept = latestDays([...unmet.values()])
        for (const [siteDay, event] of unmet)
          if (kept.has(event.day)) this.#seen.meet(event, this.#empty.has(siteDay))
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
      (ping) => !views.has(placeOfView(ping)) && this.#resident.get(ping)?.hasView(ping.pv) !== true
    )
  }

  /**
   * Writes the rows that the events change, once the events are in the store. What cannot be written is forgotten here
   * too, and read from the store the next time. `isRepeated`: the store may know these events or later ones already, so
   * that what was learnt of them says nothing.
   */
  apply(
    events: ReadonlyArray<OwnedVisitEvent>,
    isRepeated: boolean,
    nowMillis: number
  ): Effect.Effect<void, StoreError> {
    return Effect.suspend(() => {
      const touched = byVisitor(events)
      return this.#write(touched, isRepeated, nowMillis).pipe(
        Effect.onError(() =>
          Effect.sync(() => {
            for (const { key } of touched) this.#resident.forget(key)
          })
        )
      )
    })
  }

  /** Makes the rows of some visitor-days what their events say, or only compares them. */
  rebuild(where: VisitorDays, isCheck: boolean): Effect.Effect<Reconciled, StoreError> {
    const reconciled = reconcile({
      clickhouse: this.#clickhouse,
      where,
      writer: isCheck ? undefined : this.#writer,
      onDay: (key, _, isRight) => {
        if (!isRight && !isCheck) this.#resident.forget(key)
      }
    })
    return Effect.andThen(this.#writer.begin, reconciled)
  }

  /** Writes no row, and fails where any row would. */
  get check(): Effect.Effect<void, StoreError> {
    return this.#writer.check
  }

  /** Some months after the other: what is read back and what is written has a partition for each. */
  #write(touched: ReadonlyArray<Touched>, isRepeated: boolean, nowMillis: number) {
    return Effect.gen({ self: this }, function* () {
      yield* this.#writer.begin
      this.#resident.age(nowMillis)
      for (const group of monthGroups(touched)) yield* this.#writeMonths(group, isRepeated)
    })
  }

  #writeMonths(touched: ReadonlyArray<Touched>, isRepeated: boolean) {
    return Effect.gen({ self: this }, function* () {
      const unknown = touched.filter((one) => isRepeated || !this.#continue(one))
      this.#recomputed += unknown.length
      for (const where of visitorDaysOf(unknown.map(({ key }) => key))) {
        yield* reconcile({
          clickhouse: this.#clickhouse,
          where,
          writer: this.#writer,
          onDay: (key, day) => {
            this.#seen.add(key)
            if (day !== undefined) this.#resident.set(key, day)
          }
        })
      }
      yield* this.#writer.flush
    })
  }

  /** false: the visitor's day is not in memory, or has an event that was late. */
  #continue({ events, key }: Touched): boolean {
    const isNew = (): boolean => this.#empty.has(siteDayOf(key)) || this.#seen.isNew(key)
    const day = this.#resident.get(key) ?? (isNew() ? new VisitorDay() : undefined)
    this.#seen.add(key)
    const ordered = inOrder(events)
    const [first] = ordered
    if (day === undefined || first === undefined || day.isLate(first)) return false
    for (const event of ordered) day.push(event)
    for (const visit of day.take()) this.#writer.add(key, visit)
    this.#resident.set(key, day)
    return true
  }
}

/** Those of an import that spans more would push each other out of the filter. */
const latestDays = (events: ReadonlyArray<OwnedVisitEvent>): ReadonlySet<number> => {
  const days = Array.from(new Set(events.map(({ day }) => day)))
  return new Set(days.toSorted((left, right) => right - left).slice(0, daysMax))
}

const byVisitor = (events: ReadonlyArray<OwnedVisitEvent>): ReadonlyArray<Touched> => {
  const siteDays = new Map<string, Map<bigint, Touched>>()
  const touched: Array<Touched> = []
  for (const event of events) {
    const siteDay = siteDayOf(event)
    let visitors = siteDays.get(siteDay)
    if (visitors === undefined) siteDays.set(siteDay, (visitors = new Map()))
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
