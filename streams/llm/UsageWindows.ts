/** Calendar-aligned in UTC, the week from Monday; `ever` since the account was made. Source: contract/llm#usage. */
export const usageWindows = ["hour", "day", "week", "month", "year", "ever"] as const
export type UsageWindow = (typeof usageWindows)[number]

/** The unit of a window's series. */
export type BucketUnit = "minute" | "hour" | "day" | "month"

const minuteMillis = 60_000
const hourMillis = 60 * minuteMillis
const dayMillis = 24 * hourMillis

/** Monday was the fourth day after the first of January 1970. */
const firstMondayMillis = 4 * dayMillis

const aligned = (millis: number, unitMillis: number, originMillis = 0): number =>
  Math.floor((millis - originMillis) / unitMillis) * unitMillis + originMillis

const startOfMonth = (millis: number, monthsLater = 0): number => {
  const date = new Date(millis)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthsLater)
}

const startOfYear = (millis: number, yearsLater = 0): number =>
  Date.UTC(new Date(millis).getUTCFullYear() + yearsLater, 0)

/** A window as it is now: epoch milliseconds. */
export interface OpenWindow {
  readonly name: UsageWindow
  readonly startMillis: number
  /** when it begins anew; undefined: never */
  readonly resetMillis: number | undefined
  readonly bucketUnit: BucketUnit
}

const fixed = (
  name: UsageWindow,
  nowMillis: number,
  unitMillis: number,
  bucketUnit: BucketUnit,
  originMillis = 0
): OpenWindow => {
  const startMillis = aligned(nowMillis, unitMillis, originMillis)
  return { name, startMillis, resetMillis: startMillis + unitMillis, bucketUnit }
}

const openers: Readonly<Record<UsageWindow, (nowMillis: number, madeMillis: number) => OpenWindow>> = {
  hour: (nowMillis) => fixed("hour", nowMillis, hourMillis, "minute"),
  day: (nowMillis) => fixed("day", nowMillis, dayMillis, "hour"),
  week: (nowMillis) => fixed("week", nowMillis, 7 * dayMillis, "day", firstMondayMillis),
  month: (nowMillis) => ({
    name: "month",
    startMillis: startOfMonth(nowMillis),
    resetMillis: startOfMonth(nowMillis, 1),
    bucketUnit: "day"
  }),
  year: (nowMillis) => ({
    name: "year",
    startMillis: startOfYear(nowMillis),
    resetMillis: startOfYear(nowMillis, 1),
    bucketUnit: "month"
  }),
  ever: (_, madeMillis) => ({
    name: "ever",
    startMillis: madeMillis,
    resetMillis: undefined,
    bucketUnit: "month"
  })
}

/** The window that `nowMillis` is in, of an account that was made at `madeMillis`. */
export const openWindow = (name: UsageWindow, nowMillis: number, madeMillis: number): OpenWindow =>
  openers[name](nowMillis, madeMillis)

const starts: Readonly<Record<BucketUnit, (millis: number) => number>> = {
  minute: (millis) => aligned(millis, minuteMillis),
  hour: (millis) => aligned(millis, hourMillis),
  day: (millis) => aligned(millis, dayMillis),
  month: (millis) => startOfMonth(millis)
}

const nexts: Readonly<Record<BucketUnit, (millis: number) => number>> = {
  minute: (millis) => millis + minuteMillis,
  hour: (millis) => millis + hourMillis,
  day: (millis) => millis + dayMillis,
  month: (millis) => startOfMonth(millis, 1)
}

/** The starts of a window's buckets, without gaps, up to the one that now is in. */
export const bucketStarts = (window: OpenWindow, nowMillis: number): ReadonlyArray<number> => {
  const found: Array<number> = []
  const first = starts[window.bucketUnit](window.startMillis)
  for (let start = first; start <= Math.max(nowMillis, first); start = nexts[window.bucketUnit](start))
    found.push(start)
  return found
}
