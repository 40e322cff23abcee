import { Effect, Schema } from "effect"
import type { StatsQuestion } from "#schemas/analytics/Stats.ts"
import { isTimeZone, type LocalDate } from "#streams/analytics/LocalTime.ts"
import { type Period, type PeriodRange, rangeOf, rangeOfDates } from "#streams/analytics/Periods.ts"
import type { Filters } from "./Filters.ts"
import type { SiteRow } from "../sites/SiteDirectory.ts"

/** A field that its schema lets pass and that cannot be answered. */
export class QuestionInvalid extends Schema.TaggedError<QuestionInvalid>()("QuestionInvalid", {
  field: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.field}: ${this.problem}`
  }
}

/** A query about a site, in instants. */
export interface Question {
  readonly period: Period | "custom"
  readonly range: PeriodRange
  readonly timeZone: string
  readonly filters: Filters
}

const customYearsMax = 10

const invalid = (field: string, problem: string) => Effect.fail(new QuestionInvalid({ field, problem }))

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
): Effect.Effect<PeriodRange, QuestionInvalid> => {
  if (from === undefined) return invalid("from", "is required with period=custom")
  if (to === undefined) return invalid("to", "is required with period=custom")
  const [first, last] = [dateOf(from), dateOf(to)]
  if (utcOf(last) < utcOf(first)) return invalid("to", "must not be before from")
  if (utcOf(last) > utcOf({ ...first, year: first.year + customYearsMax })) {
    return invalid("to", `must be at most ${customYearsMax} years after from`)
  }
  const range = rangeOfDates(first, last, timeZone, nowMillis)
  if (range === undefined) return invalid("from", "must not be in the future")
  // East of Greenwich the first day of 1970 begins in 1969, of which nothing is stored.
  return range.fromMillis < 0 ? invalid("from", "must not be before 1970 in UTC") : Effect.succeed(range)
}

/** The query as of an instant. */
export const questionOf = Effect.fnUntraced(function* (
  site: Pick<SiteRow, "timezone">,
  { from, period = "30d", timezone, to, ...filters }: StatsQuestion,
  nowMillis: number
): Effect.fn.Return<Question, QuestionInvalid> {
  if (timezone !== undefined && !isTimeZone(timezone)) {
    return yield* invalid("timezone", "expected an IANA time zone, such as Europe/Berlin")
  }
  const timeZone = timezone ?? site.timezone
  const range =
    period === "custom"
      ? yield* customRange(from, to, timeZone, nowMillis)
      : rangeOf(period, timeZone, nowMillis)
  return { period, range, timeZone, filters }
})
