import { Predicate } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { SinkRefused, SinkUnavailable } from "#streams/kernel/Sink.ts"
import { isAway } from "#src/http/StoreAway.ts"

const stateOf = ({ reason: { cause } }: SqlError): string =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : ""

/** Classes of SQLSTATE (PostgreSQL, Appendix A) that speak of now: connections, conflicts, room, locks, operators, disks. */
const ofAnOutage = /^(08|40|53|55|57|58)/

/** Data exceptions (a number out of range, text that is none) and violated constraints. */
const ofARecord = /^(22|23)/

/**
 * The meaning of a Postgres failure for a consumer. One without a connection, that starts, stops, is full or waits for a
 * lock is an outage. Anything else that it says is a refusal, and blames the records only where its SQLSTATE does: a
 * missing function or permission does not.
 */
export const sinkFailureOf = (cause: SqlError): SinkUnavailable | SinkRefused => {
  const { message } = cause.reason.cause instanceof Error ? cause.reason.cause : cause
  const state = stateOf(cause)
  const problem = state === "" ? message : `${message} (${state})`
  return isAway(cause) || ofAnOutage.test(state)
    ? new SinkUnavailable({ problem, cause })
    : new SinkRefused({ problem, cause, blames: ofARecord.test(state) ? "record" : "unknown" })
}
