import { Effect } from "effect"
import type { VisitorKey } from "#streams/analytics/ResidentDays.ts"
import type { OwnedVisitEvent } from "#streams/analytics/VisitEvent.ts"
import { VisitorDay } from "#streams/analytics/Visits.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { eventsOf, pageRows, type StoreError } from "./EventStore.ts"
import type { VisitorDays } from "./VisitorDays.ts"
import {
  digestOf,
  type StoredVisit,
  storedVisits,
  type StoredVisits,
  visitorDayOf,
  type VisitPlace
} from "./VisitStore.ts"
import type { VisitWriter } from "./VisitWriter.ts"

/** The differences between the rows of `visits` and the events, before the repair. */
export interface Reconciled {
  readonly events: number
  /** visits that the events make; one of several rows counts once */
  readonly visits: number
  /** rows that the events make and the store had not */
  readonly missing: number
  /** rows that said something else */
  readonly wrong: number
  /** rows that no events make */
  readonly surplus: number
}

interface ReconcileOptions {
  readonly clickhouse: ClickHouseService
  readonly where: VisitorDays
  /** the writer of the differences; undefined: they are only counted */
  readonly writer: VisitWriter | undefined
  /** called with every visitor-day: as it stands after its events, where it has any, and whether its rows were right */
  readonly onDay: (key: VisitorKey, day: VisitorDay | undefined, isRight: boolean) => void
}

/**
 * Folds all events of some visitor-days anew, and makes the rows of `visits` what they say: writes what is missing or
 * different, takes back what is left. Memory holds a page of events, and of one visitor-day what is open.
 */
export const reconcile = Effect.fnUntraced(function* ({
  clickhouse,
  onDay,
  where,
  writer
}: ReconcileOptions): Effect.fn.Return<Reconciled, StoreError> {
  const stored = yield* storedVisits(clickhouse, where)
  const found = { events: 0, visits: 0, missing: 0, wrong: 0, surplus: 0 }
  let open: OpenDay | undefined

  const finish = (): void => {
    if (open === undefined) return
    open.writeTo(writer)
    onDay(open.key, open.day, open.compare(found, writer))
  }

  const take = (event: OwnedVisitEvent): void => {
    if (open === undefined || !open.isOf(event)) {
      finish()
      const id = visitorDayOf(event)
      open = new OpenDay(event, stored.get(id))
      stored.delete(id)
    }
    open.push(event)
    found.events++
  }

  yield* eventsOf(clickhouse, where, (page) =>
    Effect.suspend(() => {
      for (const event of page) take(event)
      // The parts of a day over many pages are written each in a lot of its own: a later event may change a row again.
      const isLong = open !== undefined && open.unwritten >= pageRows
      if (isLong) open?.writeTo(writer)
      return writer !== undefined && (isLong || writer.isFull) ? writer.flush : Effect.void
    })
  )
  finish()
  for (const { key, rows } of stored.values()) {
    for (const row of rows) writer?.remove(key, row)
    found.surplus += rows.length
    onDay(key, undefined, false)
  }
  if (writer !== undefined) yield* writer.flush
  return found
})

/** The visitor-day being read, and its rows in the store. */
class OpenDay {
  readonly key: VisitorKey
  readonly day = new VisitorDay()
  readonly #stored: ReadonlyMap<string, StoredVisit>
  /** digests by place, as far as the events have come */
  readonly #made = new Map<string, string>()
  #unwritten = 0

  constructor({ day, site, visitor }: VisitorKey, stored: StoredVisits | undefined) {
    this.key = { site, day, visitor }
    this.#stored = new Map(stored?.rows.map((row) => [placeOf(row), row]))
  }

  isOf({ day, site, visitor }: VisitorKey): boolean {
    return visitor === this.key.visitor && day === this.key.day && site === this.key.site
  }

  push(event: OwnedVisitEvent): void {
    this.day.push(event)
    this.#unwritten++
  }

  /** events since the last `writeTo` */
  get unwritten(): number {
    return this.#unwritten
  }

  /** Adds to the writer's lot what has changed and is not so in the store, and the names of all pages. */
  writeTo(writer: VisitWriter | undefined): void {
    this.#unwritten = 0
    for (const visit of this.day.take()) {
      const place = placeOf(visit)
      const known = this.#made.get(place) ?? this.#stored.get(place)?.digest
      const digest = digestOf(this.key, visit)
      this.#made.set(place, digest)
      if (digest !== known) writer?.add(this.key, visit)
      else writer?.name(this.key, visit)
    }
  }

  /** Counts how the store compared, and takes back what the events do not make. true: it was right. */
  compare(
    found: { visits: number; missing: number; wrong: number; surplus: number },
    writer: VisitWriter | undefined
  ): boolean {
    let isRight = true
    for (const [place, digest] of this.#made) {
      if (isWhole(place)) found.visits++
      const stored = this.#stored.get(place)
      if (stored?.digest === digest) continue
      isRight = false
      if (stored === undefined) found.missing++
      else found.wrong++
    }
    for (const [place, row] of this.#stored) {
      if (this.#made.has(place)) continue
      isRight = false
      found.surplus++
      writer?.remove(this.key, row)
    }
    return isRight
  }
}

const placeOf = ({ part, start }: VisitPlace): string => `${start}/${part}`

/** Whether it is the first, and mostly only, row of a visit. */
const isWhole = (place: string): boolean => place.endsWith("/0")
