import type { Stretch } from "./NaiveFigures.ts"

/**
 * The instants that a period covers, found by looking at the clock of the zone every quarter of an hour: no arithmetic
 * with offsets. All zones of this century change their clocks at, and by, quarters of an hour.
 */

const quarterMillis = 900_000
const hourMillis = 3_600_000
const dayMillis = 86_400_000

const clocks = new Map<string, Intl.DateTimeFormat>()

/** The calendar and clock of a zone: `2026-11-20 00:30:00 GMT+01:00`. */
const wall = (timeZone: string, millis: number): string => {
  const known = clocks.get(timeZone)
  const clock =
    known ??
    new Intl.DateTimeFormat("sv-SE", {
      timeZone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      timeZoneName: "longOffset"
    })
  clocks.set(timeZone, clock)
  return clock.format(millis)
}

const dateOn = (timeZone: string, millis: number): string => wall(timeZone, millis).slice(0, 10)

/** `2026-11-20T00:00:00+01:00` */
const labelOf = (timeZone: string, millis: number): string => {
  const [date = "", time = "", offset = ""] = wall(timeZone, millis).split(" ")
  const signed = offset.replace("GMT", "").replace("\u2212", "-")
  return `${date}T${time}${signed === "" ? "+00:00" : signed}`
}

const beginnings = new Map<string, number>()

/** The first quarter of an hour in which the calendar shows this date, or a later one where the date is skipped. */
const firstOf = (timeZone: string, date: string): number => {
  const key = `${timeZone} ${date}`
  const known = beginnings.get(key)
  if (known !== undefined) return known
  let millis = Date.parse(date) - 30 * hourMillis
  while (dateOn(timeZone, millis) < date) millis += quarterMillis
  beginnings.set(key, millis)
  return millis
}

/** The instants of [from, to) at which the clock shows a full hour, and `from`. */
const fullHours = (timeZone: string, fromMillis: number, toMillis: number): ReadonlyArray<number> => {
  const found = [fromMillis]
  for (let millis = fromMillis + quarterMillis; millis < toMillis; millis += quarterMillis) {
    if (wall(timeZone, millis).slice(14, 16) === "00") found.push(millis)
  }
  return found
}

/** The latest full hour on the clock at or before an instant. */
const fullHourBefore = (timeZone: string, atMillis: number): number => {
  let millis = Math.floor(atMillis / quarterMillis) * quarterMillis
  while (wall(timeZone, millis).slice(14, 16) !== "00") millis -= quarterMillis
  return millis
}

const calendar = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * dayMillis).toISOString().slice(0, 10)

/** The first day of a month so many months later, or earlier. */
const monthOf = (date: string, months: number): string => {
  const month = new Date(`${date.slice(0, 7)}-01T00:00:00Z`)
  month.setUTCMonth(month.getUTCMonth() + months)
  return month.toISOString().slice(0, 10)
}

/** The dates of a calendar from one up to another, both included. */
const dates = (first: string, last: string, next: (date: string) => string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let date = first; date <= last; date = next(date)) found.push(date)
  return found
}

export interface NaiveBucket extends Stretch {
  readonly label: string
}

export interface NaivePeriod {
  readonly granularity: "hour" | "day" | "month"
  readonly current: Stretch
  readonly previous: Stretch
  readonly buckets: ReadonlyArray<NaiveBucket>
}

/** `from` and `to` of a custom period: local dates, both included. */
export interface Dates {
  readonly from: string
  readonly to: string
}

/** Until the end of the second in which `now` lies; the period before is as long as what has passed of this one. */
const period = (
  timeZone: string,
  granularity: NaivePeriod["granularity"],
  starts: ReadonlyArray<number>,
  endMillis: number,
  toMillis: number,
  previousFrom: number
): NaivePeriod => {
  const fromMillis = starts[0] ?? 0
  const begun = [...new Set(starts)].filter((millis) => millis < endMillis)
  const passed = Math.floor(toMillis / 1000) * 1000 - fromMillis
  return {
    granularity,
    current: { fromMillis, toMillis: endMillis },
    previous: {
      fromMillis: previousFrom,
      toMillis: Math.min(previousFrom + Math.max(passed, 1000), fromMillis)
    },
    buckets: begun.map((millis, index) => ({
      label: labelOf(timeZone, millis),
      fromMillis: millis,
      toMillis: begun[index + 1] ?? endMillis
    }))
  }
}

const dayCounts: Readonly<Record<string, number>> = { today: 1, "7d": 7, "30d": 30, "90d": 90 }

/** The hours, days and months of a period, its buckets, and the period before: contract/analytics#periods. */
export const naivePeriod = (
  name: string,
  timeZone: string,
  nowMillis: number,
  custom?: Dates
): NaivePeriod => {
  const nextSecond = (Math.floor(nowMillis / 1000) + 1) * 1000
  const today = dateOn(timeZone, nowMillis)
  const first = (date: string): number => firstOf(timeZone, date)
  const upToNow = (
    granularity: NaivePeriod["granularity"],
    starts: ReadonlyArray<number>,
    previousFrom: number
  ): NaivePeriod => period(timeZone, granularity, starts, nextSecond, nowMillis, previousFrom)

  if (name === "24h") {
    const from = fullHourBefore(timeZone, fullHourBefore(timeZone, nowMillis) - 23 * hourMillis)
    const previous = fullHourBefore(timeZone, from - dayMillis)
    return upToNow("hour", fullHours(timeZone, from, nextSecond), previous)
  }
  if (name === "12mo") {
    const months = dates(monthOf(today, -11), today, (date) => monthOf(date, 1))
    return upToNow("month", months.map(first), first(monthOf(today, -23)))
  }
  if (name === "custom" && custom !== undefined) {
    const days = dates(custom.from, custom.to, (date) => calendar(date, 1))
    const [from, after] = [first(custom.from), first(calendar(custom.to, 1))]
    const [endMillis, toMillis] = after <= nowMillis ? [after, after] : [nextSecond, nowMillis]
    const previous = first(calendar(custom.from, -days.length))
    const by = (granularity: NaivePeriod["granularity"], starts: ReadonlyArray<number>): NaivePeriod =>
      period(timeZone, granularity, starts, endMillis, toMillis, previous)
    if (days.length === 1) return by("hour", fullHours(timeZone, from, endMillis))
    if (days.length <= 92) return by("day", days.map(first))
    const months = dates(monthOf(custom.from, 1), custom.to, (date) => monthOf(date, 1))
    return by("month", [custom.from, ...months].map(first))
  }
  const count = dayCounts[name]
  if (count === undefined) throw new Error(`no period is called ${name}`)
  const days = dates(calendar(today, 1 - count), today, (date) => calendar(date, 1))
  const [from = 0] = days.map(first)
  const previous = first(calendar(today, 1 - 2 * count))
  return name === "today"
    ? upToNow("hour", fullHours(timeZone, from, nextSecond), previous)
    : upToNow("day", days.map(first), previous)
}
