import { randomBytes } from "node:crypto"
import { encode } from "#streams/analytics/EventRecord.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"

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
