import { Chances } from "./Chances.ts"
import { random, type Random } from "./Random.ts"

/** Visits of the days of a week, Sunday first; 1 on average. */
const week = [0.8, 1.12, 1.16, 1.14, 1.1, 0.98, 0.7]

/** Per hour of the local day: a working day with its break at noon, and a weekend that begins late. */
const workday = [14, 9, 6, 5, 6, 10, 20, 38, 60, 74, 80, 78, 66, 74, 80, 78, 72, 64, 58, 58, 60, 56, 42, 26]
const weekend = [22, 15, 10, 7, 6, 8, 13, 22, 38, 54, 66, 70, 66, 66, 68, 68, 66, 64, 64, 68, 72, 66, 50, 34]

/** 1970-01-01 was a Thursday. */
const weekdayOf = (day: number): number => (day + 4) % 7

/** The weight of a local day (days since 1970-01-01): by day of the week, and up to 8 % more or less. */
export const weightOf = (day: number): number => (week[weekdayOf(day)] ?? 1) * (0.92 + 0.16 * random(day)())

const hours = [new Chances(workday), new Chances(weekend)] as const

const isWeekend = (day: number): boolean => weekdayOf(day) % 6 === 0

/** An instant of the local day, in hours after its beginning. */
export const hourOf = (next: Random, day: number): number => hours[isWeekend(day) ? 1 : 0].draw(next) + next()

/** The share of a local day's visits that begin within its first hours. */
export const shareUntil = (day: number, hour: number): number => {
  const curve = isWeekend(day) ? weekend : workday
  const total = curve.reduce((sum, weight) => sum + weight, 0)
  const past = curve.reduce((sum, weight, index) => sum + weight * Math.min(1, Math.max(0, hour - index)), 0)
  return past / total
}
