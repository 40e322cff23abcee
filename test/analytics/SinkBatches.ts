import { encode } from "#streams/analytics/EventRecord.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"

/** Events as a batch of a log, from an offset on. */
export const sinkBatch = (
  events: ReadonlyArray<StoredEvent>,
  { from = 0, logId = 7n, recovering = false } = {}
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
