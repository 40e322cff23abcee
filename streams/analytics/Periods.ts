import {
  dayMillis,
  type LocalDate,
  isoWithOffset,
  localTime,
  nextHour,
  startOfDay,
  startOfHour
} from "#streams/time/LocalTime.ts"

/** The periods. Source: contract/analytics#periods. */
export const periods = ["today", "24h", "7d", "30d", "90d", "12mo"] as const
export type Period = (typeof periods)[number]

export type Granularity = "hour" | "day" | "month"

interface Bucket {
  readonly startMillis: number
  /** the start in the site's zone, with its offset */
  readonly label: string
}

/** A stretch of time, `[fromMillis, toMillis)`. */
export interface Range {
  readonly fromMillis: number
  readonly toMillis: number
}

export interface PeriodRange extends Range {
  /** whether `toMillis` is its end; else it is now, and the period goes on */
  readonly isOver: boolean
  readonly granularity: Granularity
  /** in order, without gaps, from `fromMillis` to the bucket that `toMillis` is in */
  readonly buckets: ReadonlyArray<Bucket>
  /** as long as what has passed of the current one, at the same place one period earlier; never overlapping it */
  readonly previous: Range
}

const days = { today: 1, "7d": 7, "30d": 30, "90d": 90 } as const
const hours = 24
const months = 12

const bucketsFrom = (
  timeZone: string,
  fromMillis: number,
  lastMillis: number,
  next: (startMillis: number, index: number) => number
): ReadonlyArray<Bucket> => {
  const buckets: Array<Bucket> = []
  let index = 0
  // The last instant is in a bucket too: its events count.
  for (let startMillis = fromMillis; startMillis <= lastMillis; startMillis = next(startMillis, ++index)) {
    // A date that a calendar skips (Apia, 30 December 2011) begins and ends with the next one.
    if (startMillis === buckets.at(-1)?.startMillis) continue
    buckets.push({ startMillis, label: isoWithOffset(timeZone, startMillis) })
  }
  return buckets
}

const assemble = (
  fromMillis: number,
  toMillis: number,
  previousFromMillis: number,
  granularity: Granularity,
  buckets: ReadonlyArray<Bucket>
): PeriodRange => ({
  isOver: false,
  fromMillis,
  toMillis,
  granularity,
  buckets,
  previous: {
    fromMillis: previousFromMillis,
    // A leap day or a clock change makes the current period longer than the one before.
    toMillis: Math.min(previousFromMillis + (toMillis - fromMillis), fromMillis)
  }
})

/** The unit, days or hours, into which `rangeOfDates` splits a stretch of days. */
const granularityOf = (dayCount: number): Granularity =>
  dayCount === 1 ? "hour" : dayCount <= 92 ? "day" : "month"

/**
 * The local days from `first` to `last`, both included, as far as they have passed; undefined when none has begun. The
 * period before is as many days long. Buckets of months begin with the first day given, and with each month after it.
 */
export const rangeOfDates = (
  first: LocalDate,
  last: LocalDate,
  timeZone: string,
  nowMillis: number
): PeriodRange | undefined => {
  const dayCount =
    (Date.UTC(last.year, last.month - 1, last.day) - Date.UTC(first.year, first.month - 1, first.day)) /
      dayMillis +
    1
  const dayAt = (index: number): number => startOfDay(timeZone, { ...first, day: first.day + index })
  const from = dayAt(0)
  if (from > nowMillis) return undefined
  const end = dayAt(dayCount)
  const isOver = end <= nowMillis
  const granularity = granularityOf(dayCount)
  const lastMillis = isOver ? end - 1 : nowMillis
  const buckets = bucketsFrom(timeZone, from, lastMillis, (startMillis, index) => {
    if (granularity === "hour") return nextHour(timeZone, startMillis)
    return granularity === "day"
      ? dayAt(index)
      : startOfDay(timeZone, { ...first, month: first.month + index, day: 1 })
  })
  return { ...assemble(from, Math.min(end, nowMillis), dayAt(-dayCount), granularity, buckets), isOver }
}

/** The instants that a period covers for a site in `timeZone`, as of now. Bounds are UTC instants and safe over DST. */
export const rangeOf = (period: Period, timeZone: string, nowMillis: number): PeriodRange => {
  const today: LocalDate = localTime(timeZone, nowMillis)
  const hourly = (startMillis: number): number => nextHour(timeZone, startMillis)

  if (period === "24h") {
    const length = (hours - 1) * 3_600_000
    const from = startOfHour(timeZone, startOfHour(timeZone, nowMillis) - length)
    const previous = startOfHour(timeZone, from - hours * 3_600_000)
    return assemble(from, nowMillis, previous, "hour", bucketsFrom(timeZone, from, nowMillis, hourly))
  }

  if (period === "12mo") {
    const firstOf = (month: number): number => startOfDay(timeZone, { ...today, month, day: 1 })
    const first = today.month - (months - 1)
    const from = firstOf(first)
    const buckets = bucketsFrom(timeZone, from, nowMillis, (_, index) => firstOf(first + index))
    return assemble(from, nowMillis, firstOf(first - months), "month", buckets)
  }

  const count = days[period]
  const dayAt = (index: number): number =>
    startOfDay(timeZone, { ...today, day: today.day - (count - 1) + index })
  const from = dayAt(0)
  const buckets =
    period === "today"
      ? bucketsFrom(timeZone, from, nowMillis, hourly)
      : bucketsFrom(timeZone, from, nowMillis, (_, index) => dayAt(index))
  return assemble(from, nowMillis, dayAt(-count), period === "today" ? "hour" : "day", buckets)
}
