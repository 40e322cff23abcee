import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { encode } from "#streams/analytics/EventRecord.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { storedEvent } from "./Events.ts"

/** Random, as a log's is: files that run at once share a ClickHouse, and recovery waits for its own log's inserts. */
export const testLogId = randomBytes(8).readBigUInt64LE() >> 1n

/** Events as a batch of a log, from an offset on. */
export const sinkBatch = (
  events: ReadonlyArray<StoredEvent>,
  { from = 0, logId = testLogId, recovering = false } = {}
): SinkBatch => ({
  logId,
  from,
  to: from + events.length,
  records: events.map((event, index) => ({
    offset: from + index,
    appendedAtMillis: event.received,
    payload: new Uint8Array(encode(event))
  })),
  token: `${logId}:${from}-${from + events.length}`,
  recovering
})

export const midnight = Date.UTC(2026, 10, 21)
const minute = 60_000

/** An event so many minutes after midnight. */
export const view = (minutes: number, fields: Partial<StoredEvent> = {}): StoredEvent =>
  storedEvent({ ts: midnight + minutes * minute, received: midnight + minutes * minute, ...fields })

/** Offsets of the rows in the store, in order: one that is missing is a loss, one that comes twice a double. */
export const storedSeqs = Effect.gen(function* () {
  const clickhouse = yield* ClickHouse
  const rows = yield* clickhouse.query<{ seq: number }>("SELECT seq FROM events ORDER BY seq")
  return rows.map(({ seq }) => Number(seq))
})

export const range = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => from + index)
