import { randomUUID } from "node:crypto"
import { Clock, Effect } from "effect"
import { eventColumns } from "#streams/analytics/EventColumns.ts"
import { rowOf } from "#streams/analytics/EventRecord.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"
import { visitEventOf } from "#streams/analytics/VisitEvent.ts"
import type { VisitRecords } from "#streams/analytics/VisitRecord.ts"
import { type Sink, type SinkBatch, SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { highestVersion, insertsUnderWay, presentSeqs, type StoreError } from "./EventStore.ts"
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

  const write = (batch: SinkBatch): Effect.Effect<void, StoreError> =>
    Effect.gen(function* () {
      const events = batch.records.map(({ payload }) => visitEventOf(rowOf(payload)))
      yield* visits.meet(events)
      yield* batch.recovering ? insertMissing(clickhouse, batch) : insertEvents(clickhouse, batch)
      const ver = yield* nextVersion
      yield* visits.apply(events, batch, ver, yield* monotonicMillis, insertVisits)
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

const insertEvents = (clickhouse: ClickHouseService, batch: SinkBatch) =>
  clickhouse.insert(
    "events",
    eventNames,
    rowsOf(batch, () => true),
    { format: "RowBinary", token: batch.token }
  )

const insertMissing = Effect.fnUntraced(function* (clickhouse: ClickHouseService, batch: SinkBatch) {
  while ((yield* insertsUnderWay(clickhouse, batch.logId)) > 0) yield* Effect.sleep(100)
  const present = yield* presentSeqs(clickhouse, batch.logId, batch.from, batch.to)
  const rows = rowsOf(batch, (seq) => !present.has(seq))
  // A token of its own: it finds this insert among those under way, and never equals one with other rows.
  const token = `${batch.token}:${randomUUID()}`
  if (rows.length > 0) yield* clickhouse.insert("events", eventNames, rows, { format: "RowBinary", token })
})

/** The batch's rows, each behind its place in the log. */
const rowsOf = (batch: SinkBatch, isWanted: (seq: number) => boolean): Uint8Array => {
  const wanted = batch.records.filter(({ offset }) => isWanted(offset))
  const rows = wanted.map(({ payload }) => rowOf(payload))
  const bytes = Buffer.allocUnsafe(rows.reduce((sum, row) => sum + placeBytes + row.length, 0))
  let at = 0
  for (const [index, row] of rows.entries()) {
    bytes.writeBigUInt64LE(batch.logId, at)
    at = bytes.writeBigUInt64LE(BigInt(wanted[index]?.offset ?? 0), at + 8)
    bytes.set(row, at)
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
