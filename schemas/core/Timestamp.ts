import { Schema, SchemaTransformation } from "effect"

/** An instant in an answer: ISO-8601 in UTC with milliseconds. */
export const Timestamp = Schema.String.annotate({
  format: "date-time",
  description: "ISO-8601, UTC, milliseconds",
  examples: ["2026-11-21T08:30:00.000Z"]
})

/** The same for an instant that is a Date in memory. */
export const TimestampOfDate = Timestamp.pipe(
  Schema.decodeTo(Schema.Date, SchemaTransformation.dateFromString)
)

const shape = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/u

const instantExpected = "an ISO-8601 instant with an offset, such as 2026-11-21T08:30:00Z"

/**
 * An instant in a request: ISO-8601 with an offset or `Z`, between the years 1970 and 9999. The pattern comes last because
 * the published document knows patterns only, and annotations belong to the last check.
 */
export const Instant = Schema.String.check(
  Schema.makeFilter((text: string) => parseInstant(text) !== undefined, { expected: instantExpected }),
  Schema.isPattern(shape, { expected: instantExpected })
).annotate({ format: "date-time", examples: ["2026-11-21T08:30:00Z"] })

const dayExpected = "a day since 1970, such as 2026-11-21"

/** A calendar day in a request, between the years 1970 and 9999. */
export const Day = Schema.String.check(
  Schema.makeFilter((text: string) => parseInstant(`${text}T00:00Z`) !== undefined, {
    expected: dayExpected
  }),
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/u, { expected: dayExpected })
).annotate({ format: "date", examples: ["2026-11-21"] })

/** Parses an `Instant`. `Date.parse` alone would turn the 31st of February into the 3rd of March. */
export const parseInstant = (text: string): Date | undefined => {
  const [, year, month, day] = shape.exec(text) ?? []
  if (year === undefined || Number(year) < 1970) return undefined
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  if (Number(day) > lastDay) return undefined
  const millis = Date.parse(text)
  return Number.isNaN(millis) ? undefined : new Date(millis)
}
