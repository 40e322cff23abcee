import { Effect } from "effect"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { StoreError } from "../store/EventStore.ts"
import { idMemoryMillis } from "../ingest/IdIndex.ts"
import { quote } from "../store/VisitorDays.ts"
import type { Lane } from "../store/VisitUpdate.ts"
import type { Held } from "./CountingLease.ts"

/**
 * `event_ids` in ClickHouse: the ids of events that processes took, so that the next one to count knows a repetition. Each
 * keeps its own in files beside its log (EventIds.ts); these are the copies for the others.
 */

interface CountedId {
  readonly site: string
  readonly hash: bigint
  readonly receivedMillis: number
}

const columns = ["site", "hash", "received", "log_id"]

const idsOf = ({ records }: SinkBatch): ReadonlyArray<CountedId> => {
  const ids: Array<CountedId> = []
  for (const { payload } of records) {
    const hash = EventRecord.idHashOf(payload)
    if (hash === 0n) continue
    const { received, site } = EventRecord.decode(payload)
    ids.push({ site, hash, receivedMillis: received })
  }
  return ids
}

/** Site (at most 63 bytes), hash, second, log. */
const rowBytesMax = 84

const bytesOf = (ids: ReadonlyArray<CountedId>, logId: bigint): Uint8Array => {
  const bytes = Buffer.allocUnsafe(ids.length * rowBytesMax)
  let at = 0
  for (const { hash, receivedMillis, site } of ids) {
    at = bytes.writeUInt8(Buffer.byteLength(site), at)
    at += bytes.write(site, at)
    at = bytes.writeBigUInt64LE(hash, at)
    at = bytes.writeUInt32LE(Math.floor(receivedMillis / 1000), at)
    at = bytes.writeBigUInt64LE(logId, at)
  }
  return bytes.subarray(0, at)
}

/** Notes the ids of a batch, before its events are stored; a batch that comes again notes them again. */
export const noteIds = (clickhouse: ClickHouseService, batch: SinkBatch): Effect.Effect<void, StoreError> =>
  Effect.suspend(() => {
    const ids = idsOf(batch)
    if (ids.length === 0) return Effect.void
    return clickhouse.insert("event_ids", columns, bytesOf(ids, batch.logId), { format: "RowBinary" })
  })

/** Pairs of site and hash in one statement, some 60 bytes each; max_query_size is 256 KiB. */
const idsPerStatement = 3_000

const keyOf = (site: string, hash: bigint | string): string => `${site} ${hash}`

/**
 * The batch without the events whose ids another log's events had: a process took them that did not know that, because it
 * was cut off, or died before it could say so.
 */
const withoutRepeated = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  batch: SinkBatch
): Effect.fn.Return<SinkBatch, StoreError> {
  const ids = idsOf(batch)
  if (ids.length === 0) return batch
  const sinceMillis = ids.reduce((least, { receivedMillis }) => Math.min(least, receivedMillis), Infinity)
  const known = new Set<string>()
  for (let at = 0; at < ids.length; at += idsPerStatement) {
    const wanted = ids.slice(at, at + idsPerStatement).map(({ hash, site }) => `(${quote(site)}, ${hash})`)
    const rows = yield* clickhouse.query<{ readonly site: string; readonly hash: string }>(
      `SELECT site, toString(event_ids.hash) AS hash FROM event_ids
      WHERE (site, event_ids.hash) IN (${wanted.join(", ")}) AND log_id != {log:UInt64}
        AND received >= fromUnixTimestamp({since:UInt32})`,
      { log: String(batch.logId), since: Math.floor((sinceMillis - idMemoryMillis) / 1000) }
    )
    for (const { hash, site } of rows) known.add(keyOf(site, hash))
  }
  if (known.size === 0) return batch
  const records = batch.records.filter(({ payload }) => {
    const hash = EventRecord.idHashOf(payload)
    return hash === 0n || !known.has(keyOf(EventRecord.decode(payload).site, hash))
  })
  return { ...batch, records }
})

/** Ids in one answer, some 6 MB of JSON. */
const pageIds = 100_000

/** Hands over the ids of the last 24 hours that other logs' events had, page by page. */
export const idsOfOthers = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  logId: bigint,
  nowMillis: number,
  onId: (id: CountedId) => void
): Effect.fn.Return<number, StoreError> {
  let found = 0
  let after = { site: "", hash: "0" }
  for (;;) {
    const rows = yield* clickhouse.query<{
      readonly site: string
      readonly hash: string
      readonly second: number
    }>(
      `SELECT site, toString(event_ids.hash) AS hash, toUnixTimestamp(max(received)) AS second FROM event_ids
      WHERE log_id != {log:UInt64} AND received >= fromUnixTimestamp({since:UInt32})
        AND (site, event_ids.hash) > ({site:String}, {hash:UInt64})
      GROUP BY site, event_ids.hash ORDER BY site, event_ids.hash LIMIT ${pageIds}`,
      { log: String(logId), since: Math.floor((nowMillis - idMemoryMillis) / 1000), ...after }
    )
    for (const { hash, second, site } of rows)
      onId({ site, hash: BigInt(hash), receivedMillis: Number(second) * 1000 })
    found += rows.length
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageIds) return found
    after = { site: last.site, hash: last.hash }
  }
})

/** Tells other processes of a batch's ids, and leaves out what they had before, where this one could not know. */
export const sharedIds = (
  clickhouse: ClickHouseService,
  batch: SinkBatch,
  held: Held | undefined,
  lane: Lane
): Effect.Effect<SinkBatch, StoreError> => {
  if (held === undefined || !held.isShared) return Effect.succeed(batch)
  // The lease knows up to where the log of live events is unchecked. Imports are few, and always looked at.
  const isUnchecked = lane === "imports" || batch.from < held.uncheckedTo
  const kept = isUnchecked ? withoutRepeated(clickhouse, batch) : Effect.succeed(batch)
  return Effect.tap(kept, (found) => noteIds(clickhouse, found))
}
