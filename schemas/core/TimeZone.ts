import { Effect } from "effect"
import { type BadRequest, invalidField } from "./Problem.ts"

/** Whether `Intl` knows the zone by its IANA name. Offsets (`+02:00`), which it takes as well, have none. */
const isTimeZone = (timeZone: string): boolean => {
  if (!/^[A-Za-z][\w+/-]*$/.test(timeZone)) return false
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone }).resolvedOptions().timeZone !== ""
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

/** The field `timezone` of a request. */
export const timeZoneOf = (text: string): Effect.Effect<string, BadRequest> =>
  isTimeZone(text)
    ? Effect.succeed(text)
    : Effect.fail(invalidField("timezone", "expected an IANA time zone, such as Europe/Berlin"))
