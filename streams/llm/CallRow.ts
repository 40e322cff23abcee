import type { CallRecord } from "./CallRecord.ts"

/** A call as the table `calls` has it, less its place in the log. Source: src/llm/migrations/clickhouse/0003_Calls.ts. */
export const rowOf = (record: CallRecord) => ({
  user_id: record.userId,
  /** epoch milliseconds: the text that a DateTime64(3) is read from */
  ended: millisText(record.endedAt),
  duration_ms: within(record.endedAt - record.startedAt, uint32Max),
  first_token_ms: record.firstTokenMillis === null ? null : within(record.firstTokenMillis, uint32Max),
  id: record.id,
  key_id: record.keyId,
  source: record.source,
  kind: record.kind,
  streamed: record.streamed,
  requested: record.requested,
  resolved: record.resolved,
  collection: record.collection,
  status: record.status,
  error_code: record.errorCode,
  success: record.success,
  attempts: within(record.attempts, 65_535),
  prompt_tokens: within(record.promptTokens, Number.MAX_SAFE_INTEGER),
  completion_tokens: within(record.completionTokens, Number.MAX_SAFE_INTEGER),
  cached_tokens: within(record.cachedTokens, Number.MAX_SAFE_INTEGER),
  charge: record.settlement.charge,
  loss: record.settlement.loss,
  covered: record.settlement.covered
})

export type CallRow = ReturnType<typeof rowOf>

/** The names of the columns, in the order of the row. */
export const callColumns = [
  "user_id",
  "ended",
  "duration_ms",
  "first_token_ms",
  "id",
  "key_id",
  "source",
  "kind",
  "streamed",
  "requested",
  "resolved",
  "collection",
  "status",
  "error_code",
  "success",
  "attempts",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "charge",
  "loss",
  "covered"
] as const satisfies ReadonlyArray<keyof CallRow>

const uint32Max = 4_294_967_295

/** A clock that jumped, or an upstream that says nonsense, must not stop the batch that it is in. */
const within = (value: number, max: number): number =>
  Number.isFinite(value) ? Math.min(max, Math.max(0, Math.round(value))) : 0

/** Seconds and three decimals, which ClickHouse reads in any time zone. */
const millisText = (millis: number): string =>
  `${Math.floor(millis / 1000)}.${String(millis % 1000).padStart(3, "0")}`

/**
 * A record as the log keeps it: the row, which ClickHouse then takes as it is, and the fields that the row lacks. Only the
 * ledger reads it again.
 */
const writtenOf = (record: CallRecord) => ({
  ...rowOf(record),
  started_at: record.startedAt,
  ended_at: record.endedAt,
  draws: record.settlement.draws,
  losses: record.settlement.losses,
  estimates: record.estimates
})

type Written = ReturnType<typeof writtenOf>

/** UTF-8 JSON. */
export const encode = (record: CallRecord): Buffer => Buffer.from(JSON.stringify(writtenOf(record)))

/** Logs from before 2026-12 have the record's own fields. */
export const decode = (bytes: Uint8Array): CallRecord => {
  const json: CallRecord | Written = JSON.parse(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
  )
  return "settlement" in json ? json : recordOf(json)
}

const recordOf = (row: Written): CallRecord => ({
  id: row.id,
  userId: row.user_id,
  keyId: row.key_id,
  source: row.source,
  startedAt: row.started_at,
  endedAt: row.ended_at,
  requested: row.requested,
  resolved: row.resolved,
  collection: row.collection,
  kind: row.kind,
  streamed: row.streamed,
  status: row.status,
  errorCode: row.error_code,
  success: row.success,
  attempts: row.attempts,
  promptTokens: row.prompt_tokens,
  completionTokens: row.completion_tokens,
  cachedTokens: row.cached_tokens,
  firstTokenMillis: row.first_token_ms,
  settlement: {
    charge: row.charge,
    loss: row.loss,
    ...(row.losses === undefined ? {} : { losses: row.losses }),
    covered: row.covered,
    draws: row.draws
  },
  ...(row.estimates === undefined ? {} : { estimates: row.estimates })
})

const rowStart = Buffer.from('{"user_id":')

/** The fields of a record's row as JSON without its opening brace; the table passes over those that it lacks. */
export const fieldsOf = (bytes: Uint8Array): Uint8Array =>
  rowStart.equals(bytes.subarray(0, rowStart.length))
    ? bytes.subarray(1)
    : Buffer.from(JSON.stringify(rowOf(decode(bytes))).slice(1))
