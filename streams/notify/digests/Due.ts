import { dayMillis, firstInstant, nextHour, spanAt } from "#streams/time/LocalTime.ts"

/** When a subscriber wants messages. Times are `HH:MM` on the wall clock of `timezone`, an IANA name. */
export interface HoldSettings {
  readonly delivery: "instant" | "hourly" | "daily"
  /** of the daily digest; null: `defaultDigestAt` */
  readonly digestAt: string | null
  /** Quiet hours, `[quietFrom, quietTo)`, may go over midnight. There are none without both ends, or where they are equal. */
  readonly quietFrom: string | null
  readonly quietTo: string | null
  readonly timezone: string
}

export const defaultDigestAt = "09:00"

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

/** The first instant, from the given one on, at which the wall clock is within quiet hours; there have to be some. */
const nextQuiet = (timezone: string, begin: number, length: number, fromMillis: number): number => {
  let instant = fromMillis
  for (;;) {
    const span = spanAt(timezone, instant)
    const passed = withinDay(instant + span.offset - begin)
    if (passed < length) return instant
    instant = Math.min(instant + dayMillis - passed, span.toMillis)
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

/** The end of the quiet hours that an instant is in, in epoch milliseconds; undefined: it is in none. */
export const quietUntil = (settings: HoldSettings, nowMillis: number): number | undefined => {
  const end = afterQuiet(settings, nowMillis)
  return end === nowMillis ? undefined : end
}

/** Until before `untilMillis`, what is accepted is due at `dueMillis`; undefined: at once. */
export interface HoldSpan {
  readonly dueMillis: number | undefined
  readonly untilMillis: number
}

/** `dueOf`, and for how long that holds. */
export const holdSpanAt = (settings: HoldSettings, nowMillis: number): HoldSpan => {
  const { delivery, digestAt, quietFrom, quietTo, timezone } = settings
  const dueMillis = dueOf(settings, nowMillis)
  if (delivery === "hourly") return { dueMillis, untilMillis: nextHour(timezone, nowMillis) }
  if (delivery === "daily")
    return { dueMillis, untilMillis: nextDaily(timezone, timeOfDay(digestAt ?? defaultDigestAt), nowMillis) }
  if (dueMillis !== undefined) return { dueMillis, untilMillis: dueMillis }
  const begin = timeOfDay(quietFrom ?? quietTo ?? "00:00")
  const length = quietFrom === null || quietTo === null ? 0 : withinDay(timeOfDay(quietTo) - begin)
  return { dueMillis, untilMillis: length === 0 ? Infinity : nextQuiet(timezone, begin, length, nowMillis) }
}

/**
 * Settings as Postgres writes them (`hold_schedule`, 0038_Holds.ts): `daily 09:00 22:00 07:00 Europe/Berlin`, with `-` for
 * what is null.
 * @throws RangeError for another text
 */
export const readSchedule = (text: string): HoldSettings => {
  const [delivery, digestAt, quietFrom, quietTo, timezone] = text.split(" ")
  if (delivery !== "instant" && delivery !== "hourly" && delivery !== "daily")
    throw new RangeError(`expected a schedule, not ${JSON.stringify(text)}`)
  const given = (time: string | undefined) => (time === undefined || time === "-" ? null : time)
  return {
    delivery,
    digestAt: given(digestAt),
    quietFrom: given(quietFrom),
    quietTo: given(quietTo),
    timezone: timezone ?? ""
  }
}
