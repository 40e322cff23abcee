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
