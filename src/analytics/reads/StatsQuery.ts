import { Effect } from "effect"
import { type BadRequest, invalidField } from "#schemas/core/Problem.ts"
import type { StatsParameters } from "#schemas/analytics/Stats.ts"
import { timeZoneOf } from "#schemas/core/TimeZone.ts"
import type { LocalDate } from "#streams/time/LocalTime.ts"
import { type Period, type PeriodRange, rangeOf, rangeOfDates } from "#streams/analytics/Periods.ts"
import type { Filters } from "./Filters.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"

/** A read of the figures of a site, in instants. */
export interface StatsQuery {
  readonly period: Period | "custom"
  readonly range: PeriodRange
  readonly timeZone: string
  readonly filters: Filters
}

const customYearsMax = 10

const dateOf = (text: string): LocalDate => {
  const [year = 0, month = 0, day = 0] = text.split("-").map(Number)
  return { year, month, day }
}

const utcOf = ({ day, month, year }: LocalDate): number => Date.UTC(year, month - 1, day)

const customRange = (
  from: string | undefined,
  to: string | undefined,
  timeZone: string,
  nowMillis: number
): Effect.Effect<PeriodRange, BadRequest> => {
  if (from === undefined) return Effect.fail(invalidField("from", "is required with period=custom"))
  if (to === undefined) return Effect.fail(invalidField("to", "is required with period=custom"))
  const [first, last] = [dateOf(from), dateOf(to)]
  if (utcOf(last) < utcOf(first)) return Effect.fail(invalidField("to", "must not be before from"))
  if (utcOf(last) > utcOf({ ...first, year: first.year + customYearsMax })) {
    return Effect.fail(invalidField("to", `must be at most ${customYearsMax} years after from`))
  }
  const range = rangeOfDates(first, last, timeZone, nowMillis)
  if (range === undefined) return Effect.fail(invalidField("from", "must not be in the future"))
  // East of Greenwich the first day of 1970 begins in 1969, of which nothing is stored.
  return range.fromMillis < 0
    ? Effect.fail(invalidField("from", "must not be before 1970 in UTC"))
    : Effect.succeed(range)
}

/** Resolves a query at an instant. */
export const resolveQuery = Effect.fnUntraced(function* (
  site: Pick<SiteRow, "timezone">,
  { from, period = "30d", timezone, to, ...filters }: StatsParameters,
  nowMillis: number
): Effect.fn.Return<StatsQuery, BadRequest> {
  const timeZone = timezone === undefined ? site.timezone : yield* timeZoneOf(timezone)
  const range =
    period === "custom"
      ? yield* customRange(from, to, timeZone, nowMillis)
      : rangeOf(period, timeZone, nowMillis)
  return { period, range, timeZone, filters }
})
