import { dayMillis, firstInstant, nextHour, spanAt } from "#streams/time/LocalTime.ts"

/** When a subscriber wants messages. Times are `HH:MM` on the wall clock of `timezone`, an IANA name. */
export interface HoldSettings {
  readonly delivery: "instant" | "hourly" | "daily"
  /** of the daily digest; null: 09:00 */
  readonly digestAt: string | null
  /** Quiet hours, `[quietFrom, quietTo)`, may go over midnight. There are none without both ends, or where they are equal. */
  readonly quietFrom: string | null
  readonly quietTo: string | null
  readonly timezone: string
}

const defaultDigestAt = "09:00"

/** Milliseconds after midnight. */
const timeOfDay = (text: string): number => {
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  if (hour === undefined) throw new RangeError(`expected a time as HH:MM, not ${JSON.stringify(text)}`)
  return (Number(hour) * 60 + Number(minute)) * 60_000
}

/** Within `[0, dayMillis)`. */
const withinDay = (millis: number): number => ((millis % dayMillis) + dayMillis) % dayMillis

/** A local time that the day skips counts as the first instant after it, one that it shows twice counts the first time. */
const nextDaily = (timezone: string, digestAt: number, nowMillis: number): number => {
  const local = nowMillis + spanAt(timezone, nowMillis).offset
  let digest = Math.floor(local / dayMillis) * dayMillis + digestAt
  // Set back over midnight, a clock shows the day before again: tomorrow's time may have passed as well.
  while (firstInstant(timezone, digest) <= nowMillis) digest += dayMillis
  return firstInstant(timezone, digest)
}

/** The first instant, from the given one on, at which the wall clock is outside quiet hours. */
const afterQuiet = ({ quietFrom, quietTo, timezone }: HoldSettings, fromMillis: number): number => {
  if (quietFrom === null || quietTo === null) return fromMillis
  const begin = timeOfDay(quietFrom)
  const length = withinDay(timeOfDay(quietTo) - begin)
  let instant = fromMillis
  for (;;) {
    const span = spanAt(timezone, instant)
    const passed = withinDay(instant + span.offset - begin)
    if (passed >= length) return instant
    instant = Math.min(instant + length - passed, span.toMillis)
  }
}

/**
 * The instant, in epoch milliseconds, at which a message that is accepted now is due; undefined: at once. Hourly at the
 * next full hour of the wall clock, daily at the next `digestAt`, both after now, and never within quiet hours: at their end.
 * @throws RangeError for a zone that Intl does not know, or a time that is not `HH:MM`
 */
export const dueOf = (settings: HoldSettings, nowMillis: number): number | undefined => {
  const { delivery, digestAt, timezone } = settings
  const asked =
    delivery === "instant"
      ? nowMillis
      : delivery === "hourly"
        ? nextHour(timezone, nowMillis)
        : nextDaily(timezone, timeOfDay(digestAt ?? defaultDigestAt), nowMillis)
  const due = afterQuiet(settings, asked)
  return due === nowMillis ? undefined : due
}
