import { randomBytes } from "node:crypto"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import { type CallRecord, nothingDrawn } from "#streams/llm/CallRecord.ts"
import { encode } from "#streams/llm/CallRow.ts"

let count = 0

/** A call that went well and cost nothing, but for what the test says. */
export const callRecord = (fields: Partial<CallRecord> = {}): CallRecord => {
  const endedAt = fields.endedAt ?? Date.now()
  return {
    id: `req_${String(++count).padStart(22, "0")}`,
    userId: "usr_0000000000000000000001",
    keyId: "key_0000000000000000000001",
    source: "api",
    startedAt: endedAt - 250,
    endedAt,
    requested: "sandbox/echo",
    resolved: "sandbox/echo",
    collection: "",
    kind: "chat",
    streamed: false,
    status: 200,
    errorCode: "",
    success: true,
    attempts: 1,
    promptTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    firstTokenMillis: null,
    settlement: nothingDrawn,
    ...fields
  }
}

/** A charge to the credits. */
export const charged = (pico: bigint): CallRecord["settlement"] => ({
  ...nothingDrawn,
  charge: String(pico)
})

/** Random, as a log's is: files that run at once share a ClickHouse, and recovery waits for its own log's inserts. */
const testLogId = randomBytes(8).readBigUInt64LE() >> 1n

/** Calls as a batch of a log, from an offset on. */
export const callBatch = (
  calls: ReadonlyArray<CallRecord>,
  { from = 0, logId = testLogId, recovering = false } = {}
): SinkBatch => ({
  logId,
  from,
  to: from + calls.length,
  records: calls.map((call, index) => ({
    offset: from + index,
    appendedAtMillis: call.endedAt,
    payload: encode(call)
  })),
  token: `${logId}:${from}-${from + calls.length}`,
  recovering
})
