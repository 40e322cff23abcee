import { Context, Effect, Layer, Semaphore } from "effect"
import { eventColumns } from "#streams/analytics/EventColumns.ts"
import { rowOf } from "#streams/analytics/EventRecord.ts"
import type { ResidentLimits } from "#streams/analytics/ResidentDays.ts"
import { type OwnedVisitEvent, visitEventOf, writeOwner } from "#streams/analytics/VisitEvent.ts"
import { type Sink, type SinkBatch, SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { insertOnce } from "#src/infra/clickhouse/InsertOnce.ts"
import { sinkFailureOf } from "#src/infra/clickhouse/SinkFailure.ts"
import { noteIds, withoutRepeated } from "./counting/CountedIds.ts"
import { CountingLease, type CountingLeaseService, type Held } from "./counting/CountingLease.ts"
import { EpochVisits } from "./counting/EpochVisits.ts"
import { isFenced } from "./counting/Fence.ts"
import { type Owner, presentEvents, type StoreError } from "./EventStore.ts"
import { FirstEvents } from "./FirstEvents.ts"
import { monthGroups } from "./MonthGroups.ts"
import { pageViewOwners } from "./PageViewOwners.ts"
import type { VisitorDays } from "./VisitorDays.ts"
import type { Reconciled } from "./VisitReconcile.ts"

const eventNames = ["log_id", "seq", ...eventColumns.map(({ name }) => name)]

/** bytes of (log_id, seq) before each row */
const placeBytes = 16

export interface EventSinkStats {
  readonly events: number
  readonly visitRows: number
  /** visitor-days that were folded anew from `events` */
  readonly recomputed: number
  /** visitor-days in memory */
  readonly resident: number
}

export interface EventSinkOptions {
  /** hears the site of every event that is in the store, and in its visits */
  readonly onStored?: (site: string) => void
  readonly residentLimits?: ResidentLimits
}

export interface EventSinkService extends Sink {
  /**
   * Makes the visits of some visitor-days what their events say, or only compares them. Nothing is written meanwhile; it
   * fails while a batch before waits to be repeated, because then visits are rightly behind.
   */
  readonly rebuild: (where: VisitorDays, isCheck: boolean) => Effect.Effect<Reconciled, SinkUnavailable>
  readonly stats: () => EventSinkStats
}

/** The one writer of `events` and `visits` in this process. */
export class EventSink extends Context.Service<EventSink, EventSinkService>()(
  "signalbox/analytics/EventSink"
) {
  static readonly layer = Layer.effect(
    EventSink,
    Effect.flatMap(FirstEvents, ({ note }) => make({ onStored: note }))
  )
}

/**
 * Drains the event log into ClickHouse: the rows of `events` exactly once, then the visits that they change. Events are
 * repeated with the batch's token, or after a crash compared with what is there; visits are absolute rows and may be
 * written twice. Both wait for the lease on counting; with each new epoch what was known of visits is forgotten, because
 * others may have written them since.
 */
export const make = Effect.fnUntraced(function* ({
  onStored = () => undefined,
  residentLimits
}: EventSinkOptions = {}): Effect.fn.Return<EventSinkService, never, ClickHouse> {
  const clickhouse = yield* ClickHouse
  const lease = yield* CountingLease
  const visits = new EpochVisits(clickhouse, yield* monotonicMillis, residentLimits)
  const lock = yield* Semaphore.make(1)
  let stored = 0

  /** The last batch, for when it is repeated: the same rows under the same token, whatever was learnt in between. */
  let last: Prepared | undefined
  /** a batch before waits to be repeated */
  let isWaiting = false

  const prepare = Effect.fnUntraced(function* (batch: SinkBatch) {
    if (last?.token === batch.token && !batch.recovering) return last.events
    const events = batch.records.map(({ payload }) => visitEventOf(rowOf(payload)))
    yield* visits.now.meet(events)
    const owners = yield* pageViewOwners(clickhouse, visits.now.strangers(events), events)
    const owned = owners.size === 0 ? events : events.map((event) => ({ ...event, ...owners.get(event) }))
    last = { token: batch.token, epoch: visits.epoch, events: owned }
    return owned
  })

  const write = Effect.fnUntraced(function* (given: SinkBatch, held: Held | undefined) {
    const isRepeated = last?.token === given.token
    // Tried in another epoch: what it left is to be looked at, and is prepared anew.
    const recovering = given.recovering || (isRepeated && last?.epoch !== visits.epoch)
    const batch = yield* sharedIds(clickhouse, { ...given, recovering }, held)
    const prepared = yield* prepare(batch)
    const present = yield* insertOnce(clickhouse, {
      batch,
      isRepeated,
      insert: (isWanted, token) => insertByMonths(clickhouse, rowsOf(batch, prepared, isWanted), token),
      present: presentEvents(clickhouse, batch.logId, batch.from, batch.to)
    })
    const events = asStored(batch, prepared, present)
    yield* visits.now.apply(events, batch.recovering || isRepeated, yield* monotonicMillis)
    last = undefined
    stored += events.length
    for (const { site } of events) onStored(site)
  })

  const rebuild = (where: VisitorDays, isCheck: boolean, held: Held | undefined) =>
    isWaiting
      ? unavailable("a batch has to be repeated first", undefined)
      : Effect.mapError(fencedOff(lease, held, visits.now.rebuild(where, isCheck)), away)

  /** One at a time, and under the lease. */
  const asHolder = <A, E>(use: (held: Held | undefined) => Effect.Effect<A, E>) =>
    Effect.flatMap(lease.held, (held) =>
      Effect.flatMap(monotonicMillis, (nowMillis) => {
        visits.follow(held, nowMillis)
        return use(held)
      }).pipe(lock.withPermits(1))
    )

  return {
    write: (batch) =>
      asHolder((held) =>
        noting(fencedOff(lease, held, write(batch, held)), (isNow) => void (isWaiting = isNow))
      ),
    check: Effect.suspend(() =>
      Effect.mapError(Effect.andThen(checkEvents(clickhouse), visits.now.check), sinkFailureOf)
    ),
    rebuild: (where, isCheck) => asHolder((held) => rebuild(where, isCheck, held)),
    stats: () => ({ events: stored, ...visits.stats() })
  }
})

/** What was there before keeps the identity that it has there. */
const asStored = (
  { records }: SinkBatch,
  events: ReadonlyArray<OwnedVisitEvent>,
  present: ReadonlyMap<number, Owner>
): ReadonlyArray<OwnedVisitEvent> =>
  present.size === 0
    ? events
    : events.map((event, index) => ({ ...event, ...present.get(records[index]?.offset ?? -1) }))

/** Tells other processes of the batch's ids, and leaves out what they had before, where this one could not know. */
const sharedIds = (
  clickhouse: ClickHouseService,
  batch: SinkBatch,
  held: Held | undefined
): Effect.Effect<SinkBatch, StoreError> => {
  if (held === undefined || !held.isShared) return Effect.succeed(batch)
  const kept = batch.from < held.uncheckedTo ? withoutRepeated(clickhouse, batch) : Effect.succeed(batch)
  return Effect.tap(kept, (found) => noteIds(clickhouse, found))
}

/** Rows of an earlier epoch are refused for no fault of theirs: the batch waits until this process counts again. */
const fencedOff = <A>(
  lease: CountingLeaseService,
  held: Held | undefined,
  use: Effect.Effect<A, StoreError>
) =>
  Effect.catchIf(use, isFenced, (cause): Effect.Effect<never, StoreError> => {
    if (held !== undefined) lease.superseded(held.epoch)
    return Effect.fail(new ClickHouseUnavailable({ problem: "another process counts", cause }))
  })

/** Says whether the batch waits to be repeated. What was refused comes again in parts, or never. */
const noting = (write: Effect.Effect<void, StoreError>, note: (isWaiting: boolean) => void) => {
  const done = Effect.sync(() => note(false))
  return Effect.suspend(() => {
    note(true)
    return write.pipe(
      Effect.mapError(sinkFailureOf),
      Effect.tap(done),
      Effect.tapErrorTag("SinkRefused", () => done),
      Effect.tapDefect(() => done)
    )
  })
}

const checkEvents = (clickhouse: ClickHouseService): Effect.Effect<void, StoreError> =>
  Effect.suspend(() => clickhouse.checkInsert("events", eventNames))

const unavailable = (problem: string, cause: unknown) => Effect.fail(new SinkUnavailable({ problem, cause }))

const away = (error: StoreError) => new SinkUnavailable({ problem: error.message, cause: error })

const monotonicMillis = Effect.sync(() => performance.now())

interface Prepared {
  readonly token: string
  readonly epoch: number | undefined
  readonly events: ReadonlyArray<OwnedVisitEvent>
}

/** A row of the batch, of an event of this day. */
interface PlacedRow {
  readonly day: number
  readonly offset: number
  readonly row: Uint8Array
  readonly event: OwnedVisitEvent
}

const rowsOf = (
  batch: SinkBatch,
  events: ReadonlyArray<OwnedVisitEvent>,
  isWanted: (seq: number) => boolean
): { readonly logId: bigint; readonly rows: ReadonlyArray<PlacedRow> } => {
  const rows: Array<PlacedRow> = []
  for (const [index, { offset, payload }] of batch.records.entries()) {
    const event = events[index]
    if (event !== undefined && isWanted(offset))
      rows.push({ day: event.day, offset, row: rowOf(payload), event })
  }
  return { logId: batch.logId, rows }
}

/** A statement for each group of months. They come in the same groups again, so that each has a token of its own. */
const insertByMonths = (
  clickhouse: ClickHouseService,
  { logId, rows }: ReturnType<typeof rowsOf>,
  token: string
): Effect.Effect<void, StoreError> => {
  const groups = monthGroups(rows)
  return Effect.forEach(
    groups,
    (group, index) =>
      clickhouse.insert("events", eventNames, bytesOf(logId, group), {
        format: "RowBinary",
        token: groups.length === 1 ? token : `${token}/${index}`
      }),
    { discard: true }
  )
}

/** Rows, each behind its place in the log and under the identity that its event has by now. */
const bytesOf = (logId: bigint, rows: ReadonlyArray<PlacedRow>): Uint8Array => {
  const bytes = Buffer.allocUnsafe(rows.reduce((sum, { row }) => sum + placeBytes + row.length, 0))
  let at = 0
  for (const { event, offset, row } of rows) {
    bytes.writeBigUInt64LE(logId, at)
    at = bytes.writeBigUInt64LE(BigInt(offset), at + 8)
    bytes.set(row, at)
    if (event.kind === "engage") writeOwner(bytes, at, event)
    at += row.length
  }
  return bytes
}
