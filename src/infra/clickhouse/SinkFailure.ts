import { SinkRefused, SinkUnavailable } from "#streams/kernel/Sink.ts"
import type { ClickHouseFailed, ClickHouseUnavailable } from "./ClickHouseFailed.ts"

/**
 * Codes of system.errors that speak of a value in a row: text, numbers and dates that cannot be parsed, sizes and ranges
 * that a column does not have, elements that an enumeration does not know, constraints.
 */
const ofARecord = new Set([
  6, 25, 26, 27, 32, 33, 38, 41, 69, 70, 72, 117, 128, 130, 131, 190, 321, 349, 376, 407, 441, 467, 469, 675,
  676, 691
])

/** MEMORY_LIMIT_EXCEEDED and CANNOT_ALLOCATE_MEMORY, TIMEOUT_EXCEEDED and TOO_SLOW: fewer rows may do. */
const ofItsSize = new Set([159, 160, 173, 241])

/**
 * The meaning of a ClickHouse failure for the consumer of a log. ClickHouseUnavailable is an outage (no connection, no
 * answer, shutting down, no disk space, too many parts), unless it speaks of memory or time. ClickHouseFailed is a
 * refusal, and blames the records only where its code does: a missing table (60) or permission does not.
 */
export const sinkFailureOf = (
  cause: ClickHouseUnavailable | ClickHouseFailed
): SinkUnavailable | SinkRefused => {
  const { code, message: problem } = cause
  if (code !== undefined && ofItsSize.has(code)) return new SinkRefused({ problem, cause, blames: "size" })
  if (cause._tag === "ClickHouseUnavailable") return new SinkUnavailable({ problem, cause })
  return new SinkRefused({ problem, cause, blames: ofARecord.has(cause.code) ? "record" : "unknown" })
}
