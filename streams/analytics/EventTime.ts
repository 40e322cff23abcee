import { parseInstant } from "#schemas/core/Timestamp.ts"
import { expectations } from "#schemas/analytics/EventLimits.ts"
import { FieldFault, expected } from "./FieldFault.ts"

export const dayMillis = 86_400_000

/** The greatest age of an event. Source: contract/analytics#event-times. */
export const eventAgeMaxMillis = 7 * dayMillis

/** Days since 1970-01-01, in UTC. */
export const dayOf = (millis: number): number => Math.floor(millis / dayMillis)

/** The first UTC day that a site keeps: everything before is deleted. Source: contract/analytics#retention. */
export const firstKeptDay = (retentionDays: number | null, nowMillis: number): number =>
  retentionDays === null ? 0 : Math.max(0, dayOf(nowMillis) - retentionDays)

/** Older than events may be, or than its site keeps: counted apart from other faults, because its sender is only late. */
export class TooLate extends FieldFault {
  static readonly ofAge = new TooLate("timestamp", "must be at most 7 days in the past")
  static readonly ofRetention = new TooLate("timestamp", "must not be before the days that the site keeps")
}

/** The instant that a `timestamp` names, whole milliseconds; null is now. The bounds themselves are allowed. */
export const eventTime = (
  timestamp: string | number | null,
  nowMillis: number,
  ageMaxMillis: number
): number | FieldFault => {
  if (timestamp === null) return nowMillis
  const millis = typeof timestamp === "number" ? Math.floor(timestamp) : parseInstant(timestamp)?.getTime()
  if (millis === undefined) return expected("timestamp", expectations.timestamp)
  if (millis > nowMillis) return new FieldFault("timestamp", "must not be in the future")
  // Days are stored as days since 1970; an import is free of the limit on age, not of this one.
  if (millis < 0) return new FieldFault("timestamp", "must not be before 1970")
  return millis < nowMillis - ageMaxMillis ? TooLate.ofAge : millis
}
