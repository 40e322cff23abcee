/**
 * Wall-clock time in IANA zones, from Intl alone. Instants are epoch milliseconds; an offset is local time minus UTC.
 * Midnights that a clock change skips or repeats are handled here only.
 */

const minuteMillis = 60_000
const hourMillis = 3_600_000
export const dayMillis = 86_400_000

/** A calendar day; `month` counts from 1. Days beyond the end of a month roll over, as in `Date.UTC`. */
export interface LocalDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

interface LocalTime extends LocalDate {
  readonly hour: number
  readonly minute: number
  readonly second: number
}

const formatters = new Map<string, Intl.DateTimeFormat>()

/** Making a formatter costs about 50 µs, using one about 2 µs; there are some 600 zones. */
const formatterOf = (timeZone: string): Intl.DateTimeFormat => {
  // Names count in any case: by one key a zone, or their spellings would fill the memory.
  const key = timeZone.toLowerCase()
  const known = formatters.get(key)
  if (known !== undefined) return known
  const made = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    calendar: "iso8601",
    numberingSystem: "latn",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric"
  })
  formatters.set(key, made)
  return made
}

export const localTime = (timeZone: string, instantMillis: number): LocalTime => {
  const local = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 }
  for (const { type, value } of formatterOf(timeZone).formatToParts(instantMillis)) {
    if (type in local) local[type as keyof LocalTime] = Number(value)
  }
  return local
}

export const offsetMillis = (timeZone: string, instantMillis: number): number => {
  const { day, hour, minute, month, second, year } = localTime(timeZone, instantMillis)
  const wholeSecond = Math.floor(instantMillis / 1000) * 1000
  return Date.UTC(year, month - 1, day, hour, minute, second) - wholeSecond
}

/** The first instant of a local day: midnight, or where a clock change skips midnight the change itself. */
export const startOfDay = (timeZone: string, { day, month, year }: LocalDate): number => {
  const asUtc = Date.UTC(year, month - 1, day)
  const before = offsetMillis(timeZone, asUtc - dayMillis)
  const after = offsetMillis(timeZone, asUtc + dayMillis)
  // The larger offset gives the earlier instant, and of a repeated midnight the first one counts.
  const offsets = before >= after ? [before, after] : [after, before]
  const midnight = offsets
    .map((offset) => ({ instant: asUtc - offset, offset }))
    .find(({ instant, offset }) => offsetMillis(timeZone, instant) === offset)
  return midnight?.instant ?? changeBetween(timeZone, asUtc - dayMillis, asUtc + dayMillis)
}

/** The instant within `(low, high]` from which the offset of `high` holds, given that it changes once. */
const changeBetween = (timeZone: string, low: number, high: number): number => {
  const after = offsetMillis(timeZone, high)
  let [below, reached] = [low, high]
  while (reached - below > 1000) {
    const middle = Math.floor((below + reached) / 2000) * 1000
    if (offsetMillis(timeZone, middle) === after) reached = middle
    else below = middle
  }
  return reached
}

/** The latest full hour of the wall clock at or before an instant. */
export const startOfHour = (timeZone: string, instantMillis: number): number => {
  const offset = offsetMillis(timeZone, instantMillis)
  const pastHour = (((instantMillis + offset) % hourMillis) + hourMillis) % hourMillis
  const start = instantMillis - pastHour
  // The clock changed within this hour, so its full hour was never shown: the one before the change counts.
  return offsetMillis(timeZone, start) === offset ? start : startOfHour(timeZone, start)
}

/**
 * The next full hour of the wall clock. A clock that changes by less than an hour (Lord Howe: 30 minutes) gives one
 * shorter or longer step.
 */
export const nextHour = (timeZone: string, hourStartMillis: number): number => {
  const next = startOfHour(timeZone, hourStartMillis + hourMillis)
  return next > hourStartMillis
    ? next
    : startOfHour(timeZone, hourStartMillis + hourMillis + 30 * minuteMillis)
}

const twoDigits = (value: number): string => String(value).padStart(2, "0")

/** `2026-11-20T00:00:00+01:00` */
export const isoWithOffset = (timeZone: string, instantMillis: number): string => {
  const offset = offsetMillis(timeZone, instantMillis)
  const local = new Date(instantMillis + offset).toISOString().slice(0, 19)
  const minutes = Math.abs(Math.trunc(offset / minuteMillis))
  return `${local}${offset < 0 ? "-" : "+"}${twoDigits(Math.trunc(minutes / 60))}:${twoDigits(minutes % 60)}`
}
