import { Context, Effect, Semaphore } from "effect"
import { eventColumns } from "#streams/analytics/EventColumns.ts"
import { checked, headerBytes } from "#streams/analytics/EventRecord.ts"
import type { ResidentLimits } from "#streams/analytics/ResidentDays.ts"
import { type OwnedVisitEvent, visitEventOf, writeOwner } from "#streams/analytics/VisitEvent.ts"
import { type Sink, type SinkBatch, SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { insertOnce } from "#src/infra/clickhouse/InsertOnce.ts"
import { nativeBlock } from "#src/infra/clickhouse/NativeBlock.ts"
import { sinkFailureOf } from "#src/infra/clickhouse/SinkFailure.ts"
import { sharedIds } from "../counting/CountedIds.ts"
import { CountingLease, type Held } from "../counting/CountingLease.ts"
import { EpochVisits } from "../counting/EpochVisits.ts"
import { fencedOff } from "../counting/Fence.ts"
import { presentEvents, type StoreError } from "./EventStore.ts"
import { importTurns, type ImportTurnLimits } from "./SinkLane.ts"
import { monthGroups } from "./MonthGroups.ts"
import { pageViewOwners } from "./PageViewOwners.ts"
import type { VisitorDays } from "./VisitorDays.ts"
import type { Reconciled } from "./VisitReconcile.ts"
import { SinkLane } from "./SinkLane.ts"

const columns = [{ name: "log_id", type: "UInt64" }, { name: "seq", type: "UInt64" }, ...eventColumns]
const eventNames = columns.map(({ name }) => name)

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

interface EventSinkOptions {
  /** hears the site of every event that is in the store, and in its visits */
  readonly onStored?: (site: string) => void
  readonly residentLimits?: ResidentLimits
  readonly importTurns?: ImportTurnLimits
}

export interface EventSinkService extends Sink {
  /**
   * For the batches of the log of imports (ImportRecord.ts). They are written in turns, between which live batches
   * come: the longest waiting is next.
   */
  readonly imports: Sink
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
) {}

/**
 * Drains the event logs into ClickHouse: the rows of `events` exactly once, then the visits that they change. Events are
 * repeated with the batch's token, or after a crash compared with what is there; visits are absolute rows and may be
 * written twice. Both wait for the lease on counting; with each new epoch what was known of visits is forgotten, because
 * others may have written them since.
 */
export const make = Effect.fnUntraced(function* ({
  importTurns: turnLimits = { rows: 2_000, months: 2 },
  onStored = () => undefined,
  residentLimits
}: EventSinkOptions = {}): Effect.fn.Return<EventSinkService, never, ClickHouse> {
  const clickhouse = yield* ClickHouse
  const lease = yield* CountingLease
  const visits = new EpochVisits(clickhouse, yield* monotonicMillis, residentLimits)
  const lock = yield* Semaphore.make(1)
  let stored = 0
  const lanes = {
    live: new SinkLane("live", (batch) => [batch]),
    imports: new SinkLane("imports", (batch) => importTurns(batch, turnLimits))
  }

  /** One at a time, and under the lease. */
  const asHolder = <A, E>(use: (held: Held | undefined) => Effect.Effect<A, E>) =>
    lock.withPermits(1)(
      Effect.flatMap(lease.held, (held) =>
        Effect.flatMap(monotonicMillis, (nowMillis) => {
          visits.follow(held, nowMillis)
          return use(held)
        })
      )
    )

  const sinkOf = (lane: SinkLane): Sink => ({
    write: (batch) =>
      Effect.gen(function* () {
        for (const turn of lane.turnsOf(batch)) {
          if (lane.done.has(turn.token)) continue
          const sites = yield* asHolder((held) =>
            noting(
              fencedOff(lease, held, writeTurn({ clickhouse, visits, lane, held }, turn)),
              (isNow) => void (lane.isWaiting = isNow)
            )
          )
          stored += sites.length
          sites.forEach(onStored)
        }
        lane.clear()
      }),
    check: Effect.suspend(() =>
      Effect.mapError(Effect.andThen(checkEvents(clickhouse), visits.now.check), sinkFailureOf)
    )
  })

  const rebuild = (where: VisitorDays, isCheck: boolean, held: Held | undefined) =>
    lanes.live.isWaiting || lanes.imports.isWaiting
      ? unavailable("a batch has to be repeated first", undefined)
      : Effect.mapError(fencedOff(lease, held, visits.now.rebuild(where, isCheck)), away)

  return {
    ...sinkOf(lanes.live),
    imports: sinkOf(lanes.imports),
    rebuild: (where, isCheck) => asHolder((held) => rebuild(where, isCheck, held)),
    stats: () => ({ events: stored, ...visits.stats() })
  }
})

/** The destination of a turn, and the known state of it. */
interface Writing {
  readonly clickhouse: ClickHouseService
  readonly visits: EpochVisits
  readonly lane: SinkLane
  readonly held: Held | undefined
}

/** Answers the site of each of its events. */
const writeTurn = Effect.fnUntraced(function* (
  writing: Writing,
  turn: SinkBatch
): Effect.fn.Return<ReadonlyArray<string>, StoreError> {
  const { clickhouse, held, lane, visits } = writing
  const tried = lane.tried.get(turn.token)
  const isRepeated = tried !== undefined
  // Tried in another epoch: its remains are checked, and it is prepared anew.
  const recovering = turn.recovering || (isRepeated && tried.epoch !== visits.epoch)
  const batch = yield* sharedIds(clickhouse, { ...turn, recovering }, held, lane.name)
  const prepared = isRepeated && !recovering ? tried.events : yield* prepare(writing, batch)
  const present = yield* insertOnce(clickhouse, {
    batch,
    isRepeated,
    insert: (isWanted, token) => insertByMonths(clickhouse, rowsOf(batch, prepared, isWanted), token),
    present: presentOf(clickhouse, batch)
  })
  // Events that were there before keep the identity that they have there.
  const events =
    present.size === 0
      ? prepared
      : prepared.map((event, index) => ({ ...event, ...present.get(batch.records[index]?.offset ?? -1) }))
  yield* visits.now.apply(events, {
    lane: lane.name,
    isRepeated: recovering || isRepeated,
    nowMillis: yield* monotonicMillis
  })
  lane.done.add(turn.token)
  return events.map(({ site }) => site)
})

const prepare = Effect.fnUntraced(function* ({ clickhouse, lane, visits }: Writing, turn: SinkBatch) {
  const events = turn.records.map(({ payload }) => visitEventOf(checked(payload), headerBytes))
  yield* visits.now.meet(events, lane.name)
  const owners = yield* pageViewOwners(clickhouse, visits.now.strangers(events), events)
  const owned = owners.size === 0 ? events : events.map((event) => ({ ...event, ...owners.get(event) }))
  lane.tried.set(turn.token, { epoch: visits.epoch, events: owned })
  return owned
})

/** Of a turn's records, which have gaps, those that are in the store. */
const presentOf = (clickhouse: ClickHouseService, { from, logId, records, to }: SinkBatch) =>
  Effect.map(presentEvents(clickhouse, logId, from, to), (found) =>
    records.length === to - from
      ? found
      : new Map(
          records.flatMap(({ offset }) => {
            const owner = found.get(offset)
            return owner === undefined ? [] : [[offset, owner] as const]
          })
        )
  )

/** Notes whether the turn waits to be repeated. A refused turn comes again in parts, or never. */
const noting = <A>(write: Effect.Effect<A, StoreError>, note: (isWaiting: boolean) => void) => {
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

/** A row of the batch, of an event of this day. */
interface PlacedRow {
  readonly day: number
  readonly offset: number
  /** the log record, whose row begins after its header */
  readonly payload: Uint8Array
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
      rows.push({ day: event.day, offset, payload: checked(payload), event })
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
      clickhouse.insert("events", eventNames, nativeBlock(columns, bytesOf(logId, group)), {
        format: "Native",
        token: groups.length === 1 ? token : `${token}/${index}`
      }),
    { discard: true }
  )
}

/** Rows in RowBinary, each behind its place in the log and under the identity that its event has by now. */
const bytesOf = (logId: bigint, rows: ReadonlyArray<PlacedRow>): Buffer => {
  const more = placeBytes - headerBytes
  const bytes = Buffer.allocUnsafe(rows.reduce((sum, { payload }) => sum + more + payload.length, 0))
  let at = 0
  for (const { event, offset, payload } of rows) {
    // The record's header is overwritten by the end of the place, which is longer.
    bytes.set(payload, at + more)
    bytes.writeBigUInt64LE(logId, at)
    at = bytes.writeBigUInt64LE(BigInt(offset), at + 8)
    if (event.kind === "engage") writeOwner(bytes, at, event)
    at += payload.length - headerBytes
  }
  return bytes
}
