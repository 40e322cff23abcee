import { randomUUID } from "node:crypto"
import { Clock, Effect } from "effect"
import { eventColumns } from "#streams/analytics/EventColumns.ts"
import { rowOf } from "#streams/analytics/EventRecord.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"
import { type OwnedVisitEvent, visitEventOf, writeOwner } from "#streams/analytics/VisitEvent.ts"
import type { VisitRecords } from "#streams/analytics/VisitRecord.ts"
import { type Sink, type SinkBatch, SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { highestVersion, insertsUnderWay, presentEvents, type StoreError } from "./EventStore.ts"
import { pageViewOwners } from "./PageViewOwners.ts"
import { VisitUpdate } from "./VisitUpdate.ts"

const eventNames = ["log_id", "seq", ...eventColumns.map(({ name }) => name)]
const visitNames = visitColumns.map(({ name }) => name)

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

export interface EventSink extends Sink {
  readonly stats: () => EventSinkStats
}

/**
 * Drains the event log into ClickHouse: the rows of `events` exactly once, then the visits that they change. Events are
 * repeated with the batch's token, or after a crash compared with what is there; visits are absolute rows and may be
 * written twice. `onStored` hears the site of every event that has got there.
 */
export const make = Effect.fnUntraced(function* (
  onStored: (site: string) => void = () => undefined
): Effect.fn.Return<EventSink, never, ClickHouse> {
  const clickhouse = yield* ClickHouse
  const visits = new VisitUpdate(clickhouse, yield* monotonicMillis)
  const nextVersion = versions(clickhouse)
  const counted = { events: 0, visitRows: 0 }

  const insertVisits = (rows: VisitRecords): Effect.Effect<void, StoreError> =>
    rows.rows === 0
      ? Effect.void
      : Effect.map(clickhouse.insert("visits", visitNames, rows.bytes(), { format: "RowBinary" }), () => {
          counted.visitRows += rows.rows
        })

  /** The last batch, for when it is repeated: the same rows under the same token, whatever was learnt in between. */
  let last: Prepared | undefined

  const prepare = Effect.fnUntraced(function* (batch: SinkBatch) {
    if (last?.token === batch.token && !batch.recovering) return last.events
    const events = batch.records.map(({ payload }) => visitEventOf(rowOf(payload)))
    yield* visits.meet(events)
    const owners = yield* pageViewOwners(clickhouse, visits.strangers(events), events)
    const owned = owners.size === 0 ? events : events.map((event) => ({ ...event, ...owners.get(event) }))
    last = { token: batch.token, events: owned }
    return owned
  })

  const write = (batch: SinkBatch): Effect.Effect<void, StoreError> =>
    Effect.gen(function* () {
      const isRepeated = last?.token === batch.token
      const prepared = yield* prepare(batch)
      if (!batch.recovering) yield* insertAll(clickhouse, batch, prepared)
      // A store that was killed may know the token of an attempt whose rows it lost, and then drops its repetition.
      const events =
        batch.recovering || isRepeated ? yield* insertMissing(clickhouse, batch, prepared) : prepared
      const ver = yield* nextVersion
      yield* visits.apply(events, batch, ver, yield* monotonicMillis, insertVisits)
      last = undefined
      counted.events += events.length
      for (const { site } of events) onStored(site)
    })

  return {
    write: (batch) =>
      Effect.mapError(write(batch), (cause) => new SinkUnavailable({ problem: cause.message, cause })),
    stats: () => ({ ...counted, recomputed: visits.recomputed, resident: visits.resident })
  }
})

const monotonicMillis = Effect.sync(() => performance.now())

interface Prepared {
  readonly token: string
  readonly events: ReadonlyArray<OwnedVisitEvent>
}

const insertAll = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  batch: SinkBatch,
  events: ReadonlyArray<OwnedVisitEvent>
) {
  const rows = rowsOf(batch, events, () => true)
  yield* clickhouse.insert("events", eventNames, rows, { format: "RowBinary", token: batch.token })
})

/** Answers the events as they are in the store: what was there before keeps the identity that it has there. */
const insertMissing = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  batch: SinkBatch,
  events: ReadonlyArray<OwnedVisitEvent>
) {
  while ((yield* insertsUnderWay(clickhouse, batch.logId)) > 0) yield* Effect.sleep(100)
  const present = yield* presentEvents(clickhouse, batch.logId, batch.from, batch.to)
  const rows = rowsOf(batch, events, (seq) => !present.has(seq))
  // A token of its own: it finds this insert among those under way, and never equals one with other rows.
  const token = `${batch.token}:${randomUUID()}`
  if (rows.length > 0) yield* clickhouse.insert("events", eventNames, rows, { format: "RowBinary", token })
  return events.map((event, index) => ({ ...event, ...present.get(batch.from + index) }))
})

/** The batch's rows, each behind its place in the log and under the identity that its event has by now. */
const rowsOf = (
  batch: SinkBatch,
  events: ReadonlyArray<OwnedVisitEvent>,
  isWanted: (seq: number) => boolean
): Uint8Array => {
  const wanted = batch.records.map(({ offset, payload }, index) => ({ offset, row: rowOf(payload), index }))
  const rows = wanted.filter(({ offset }) => isWanted(offset))
  const bytes = Buffer.allocUnsafe(rows.reduce((sum, { row }) => sum + placeBytes + row.length, 0))
  let at = 0
  for (const { index, offset, row } of rows) {
    bytes.writeBigUInt64LE(batch.logId, at)
    at = bytes.writeBigUInt64LE(BigInt(offset), at + 8)
    bytes.set(row, at)
    const event = events[index]
    if (event?.kind === "engage") writeOwner(bytes, at, event)
    at += row.length
  }
  return bytes
}

/**
 * Versions of visits: microseconds, and always higher than any before. Not the log's offset, because a new log counts
 * from 0 again, and rows written by two processes in turn must be comparable.
 */
const versions = (clickhouse: ClickHouseService): Effect.Effect<bigint, StoreError> => {
  let last: bigint | undefined
  return Effect.gen(function* () {
    const before: bigint = last ?? (yield* highestVersion(clickhouse))
    const now = BigInt(yield* Clock.currentTimeMillis) * 1000n
    last = now > before ? now : before + 1n
    return last
  })
}
