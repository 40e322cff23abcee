/**
 * Wall-clock time in IANA zones, from Intl alone. Instants are epoch milliseconds; an offset is local time minus UTC.
 * Local times that a clock change skips or repeats are handled here only.
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

/** A stretch of time, `[fromMillis, toMillis)`, in which a zone's offset does not change; a day long at most. */
interface Span {
  readonly fromMillis: number
  readonly toMillis: number
  readonly offset: number
}

interface Zone {
  readonly formatter: Intl.DateTimeFormat
  /** by day of UTC since 1970: the day's first span, and what follows where the clock changes within the day */
  readonly days: Map<number, readonly [Span, Span?]>
}

const zones = new Map<string, Zone>()

/** Days kept of a zone. */
const maxDays = 128

/** Making a formatter costs about 50 µs, using one about 2 µs; there are some 600 zones. */
const zoneOf = (timeZone: string): Zone => {
  // Names count in any case: by one key a zone, or their spellings would fill the memory.
  const key = timeZone.toLowerCase()
  const known = zones.get(key)
  if (known !== undefined) return known
  const formatter = new Intl.DateTimeFormat("en-US", {
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
  const made = { formatter, days: new Map() }
  zones.set(key, made)
  return made
}

export const localTime = (timeZone: string, instantMillis: number): LocalTime => {
  const local = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 }
  for (const { type, value } of zoneOf(timeZone).formatter.formatToParts(instantMillis)) {
    if (type in local) local[type as keyof LocalTime] = Number(value)
  }
  return local
}

export const offsetMillis = (timeZone: string, instantMillis: number): number => {
  const { day, hour, minute, month, second, year } = localTime(timeZone, instantMillis)
  const wholeSecond = Math.floor(instantMillis / 1000) * 1000
  return Date.UTC(year, month - 1, day, hour, minute, second) - wholeSecond
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

/** No zone has changed its clock twice within a day of UTC. */
const spansOfDay = (timeZone: string, day: number): readonly [Span, Span?] => {
  const [fromMillis, toMillis] = [day * dayMillis, (day + 1) * dayMillis]
  const [offset, nextOffset] = [offsetMillis(timeZone, fromMillis), offsetMillis(timeZone, toMillis)]
  if (offset === nextOffset) return [{ fromMillis, toMillis, offset }]
  const change = changeBetween(timeZone, fromMillis, toMillis)
  return [
    { fromMillis, toMillis: change, offset },
    { fromMillis: change, toMillis, offset: nextOffset }
  ]
}

/**
 * The span that an instant is in. Known ones cost far less than asking Intl for an offset.
 * @throws RangeError for a zone that Intl does not know, and for an instant that is no number
 */
export const spanAt = (timeZone: string, instantMillis: number): Span => {
  const { days } = zoneOf(timeZone)
  const day = Math.floor(instantMillis / dayMillis)
  let spans = days.get(day)
  if (spans === undefined) {
    spans = spansOfDay(timeZone, day)
    if (days.size >= maxDays) days.clear()
    days.set(day, spans)
  }
  const [first, second] = spans
  return second === undefined || instantMillis < first.toMillis ? first : second
}

/**
 * The first instant at which the wall clock shows a local time, or a later one where a clock change skips it. The local
 * time is given in milliseconds as if it were UTC: `Date.UTC(2026, 2, 29, 2, 30)`.
 */
export const firstInstant = (timeZone: string, localMillis: number): number => {
  // No clock is a day ahead of UTC, so a day earlier none has come so far.
  let span = spanAt(timeZone, localMillis - dayMillis)
  while (localMillis - span.offset >= span.toMillis) span = spanAt(timeZone, span.toMillis)
  return Math.max(localMillis - span.offset, span.fromMillis)
}

/** The first instant of a local day: midnight, or where a clock change skips midnight the change itself. */
export const startOfDay = (timeZone: string, { day, month, year }: LocalDate): number =>
  firstInstant(timeZone, Date.UTC(year, month - 1, day))

/** The latest full hour of the wall clock at or before an instant. */
export const startOfHour = (timeZone: string, instantMillis: number): number => {
  const offset = offsetMillis(timeZone, instantMillis)
  const pastHour = (((instantMillis + offset) % hourMillis) + hourMillis) % hourMillis
  const start = instantMillis - pastHour
  // The clock changed within this hour, so its full hour was never shown: the one before the change counts.
  return offsetMillis(timeZone, start) === offset ? start : startOfHour(timeZone, start)
}

/**
 * The first full hour of the wall clock after an instant. A clock that changes by less than an hour (Lord Howe: 30
 * minutes) gives one shorter or longer step.
 */
export const nextHour = (timeZone: string, instantMillis: number): number => {
  let span = spanAt(timeZone, instantMillis)
  let hour = Math.floor((instantMillis + span.offset) / hourMillis) + 1
  while (hour * hourMillis - span.offset >= span.toMillis) {
    span = spanAt(timeZone, span.toMillis)
    hour = Math.ceil((span.fromMillis + span.offset) / hourMillis)
  }
  return hour * hourMillis - span.offset
}

const twoDigits = (value: number): string => String(value).padStart(2, "0")

/** `2026-11-20T00:00:00+01:00` */
export const isoWithOffset = (timeZone: string, instantMillis: number): string => {
  const offset = offsetMillis(timeZone, instantMillis)
  const local = new Date(instantMillis + offset).toISOString().slice(0, 19)
  const minutes = Math.abs(Math.trunc(offset / minuteMillis))
  return `${local}${offset < 0 ? "-" : "+"}${twoDigits(Math.trunc(minutes / 60))}:${twoDigits(minutes % 60)}`
}
