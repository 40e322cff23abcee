import { Effect } from "effect"
import { ResidentDays, siteDayOf, type VisitorKey } from "#streams/analytics/ResidentDays.ts"
import { SeenVisitors } from "#streams/analytics/SeenVisitors.ts"
import { packedEmpty, type OwnedVisitEvent } from "#streams/analytics/VisitEvent.ts"
import { VisitRecords } from "#streams/analytics/VisitRecord.ts"
import { inOrder, type Visit, VisitorDay } from "#streams/analytics/Visits.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { eventsOf, siteDaysWithEvents, type PlacedVisitEvent, type StoreError } from "./EventStore.ts"

/** The offsets [from, to) of a log: events that the visits in the store do not know yet. */
export interface NewEvents {
  readonly logId: bigint
  readonly from: number
  readonly to: number
}

/** Open visits of about 100,000 visitors in each generation, some 100 MB. */
const residentLimits = { weightMax: 1_000_000, generationMillis: 30 * 60_000 }

interface Touched {
  readonly key: VisitorKey
  readonly events: Array<OwnedVisitEvent>
}

/**
 * Brings visits up to date with a batch of events. A visitor who is in memory, or certainly new, goes on from there;
 * all others, and those whose events come late, are folded again from all events of their day. Either way the rows are
 * what the day's events say, so a batch that is repeated, wholly or in part, changes nothing.
 */
export class VisitUpdate {
  readonly #clickhouse: ClickHouseService
  readonly #seen = new SeenVisitors()
  readonly #resident: ResidentDays
  #recomputed = 0

  constructor(clickhouse: ClickHouseService, nowMillis: number) {
    this.#clickhouse = clickhouse
    this.#resident = new ResidentDays(residentLimits, nowMillis)
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
    for (const event of events) if (this.#seen.isUnmet(event)) unmet.set(siteDayOf(event), event)
    if (unmet.size === 0) return Effect.void
    return siteDaysWithEvents(this.#clickhouse, [...unmet.values()]).pipe(
      Effect.map((known) => {
        for (const [siteDay, event] of unmet) this.#seen.meet(event, !known.has(siteDay))
      })
    )
  }

  /**
   * Engage pings whose page view is not their sender's, as far as that is known here: after midnight, or from another
   * address, the same person has another identity. To be called before the events are applied.
   */
  strangers(events: ReadonlyArray<OwnedVisitEvent>): ReadonlyArray<OwnedVisitEvent> {
    const pings = events.filter(({ kind, pv }) => kind === "engage" && pv !== packedEmpty)
    if (pings.length === 0) return pings
    const placeOfView = (event: OwnedVisitEvent): string => `${siteDayOf(event)}/${event.visitor}/${event.pv}`
    const views = new Set(events.filter(({ kind }) => kind === "pageview").map(placeOfView))
    return pings.filter((ping) => {
      if (views.has(placeOfView(ping))) return false
      const day = this.#resident.get(ping)
      return day === undefined ? this.#seen.isNew(ping) : !day.hasView(ping.pv)
    })
  }

  /**
   * The changed rows, once the events are in the store. `stored` has to be run with the result: what cannot be stored
   * is forgotten here too, and read from the store the next time.
   */
  apply<E>(
    events: ReadonlyArray<OwnedVisitEvent>,
    batch: NewEvents,
    ver: bigint,
    nowMillis: number,
    stored: (rows: VisitRecords) => Effect.Effect<void, E>
  ): Effect.Effect<void, E | StoreError> {
    return Effect.suspend(() => {
      this.#resident.turn(nowMillis)
      const touched = byVisitor(events)
      const rows = new VisitRecords()
      const unknown = touched.filter((one) => !this.#continue(one, rows, ver))
      return this.#recompute(unknown, batch, rows, ver).pipe(
        Effect.andThen(Effect.suspend(() => stored(rows))),
        Effect.onError(() =>
          Effect.sync(() => {
            for (const { key } of touched) this.#resident.forget(key)
          })
        )
      )
    })
  }

  /** false: the visitor's day is not in memory, or has an event that was late. */
  #continue({ events, key }: Touched, rows: VisitRecords, ver: bigint): boolean {
    const day = this.#resident.get(key) ?? (this.#seen.isNew(key) ? new VisitorDay() : undefined)
    this.#seen.add(key)
    const ordered = inOrder(events)
    const [first] = ordered
    if (day === undefined || first === undefined || day.isLate(first)) return false
    for (const event of ordered) day.push(event)
    for (const visit of day.take()) rows.add(key, visit, ver)
    this.#resident.set(key, day)
    return true
  }

  #recompute(touched: ReadonlyArray<Touched>, batch: NewEvents, rows: VisitRecords, ver: bigint) {
    const days = new Map<string, Refold>()
    const keys = touched.map(({ key }) => key)
    this.#recomputed += keys.length
    const onEvent = (event: PlacedVisitEvent): void => {
      const id = `${siteDayOf(event)}/${event.visitor}`
      let day = days.get(id)
      if (day === undefined) days.set(id, (day = new Refold(event)))
      const isNew = event.logId === batch.logId && event.seq >= batch.from && event.seq < batch.to
      day.push(event, isNew)
    }
    return eventsOf(this.#clickhouse, keys, onEvent).pipe(
      Effect.map(() => {
        for (const day of days.values()) {
          day.writeTo(rows, ver)
          this.#resident.set(day.key, day.after)
        }
      })
    )
  }
}

/**
 * A visitor-day folded twice, with the new events and without them: rows that only the latter has are in the store and
 * have to go.
 */
class Refold {
  readonly key: VisitorKey
  readonly after = new VisitorDay()
  readonly #before = new VisitorDay()

  constructor({ day, site, visitor }: VisitorKey) {
    this.key = { site, day, visitor }
  }

  push(event: PlacedVisitEvent, isNew: boolean): void {
    this.after.push(event)
    if (!isNew) this.#before.push(event)
  }

  writeTo(rows: VisitRecords, ver: bigint): void {
    const current = this.after.take()
    const places = new Set(current.map(placeOf))
    for (const visit of current) rows.add(this.key, visit, ver)
    for (const visit of this.#before.take()) {
      if (!places.has(placeOf(visit))) rows.remove(this.key, visit, ver)
    }
  }
}

const placeOf = (visit: Visit): string => `${visit.start}/${visit.part}`

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
    const one = { key: { site, day, visitor }, events: [event] }
    visitors.set(visitor, one)
    touched.push(one)
  }
  return touched
}
