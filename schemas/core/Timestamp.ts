import { Schema } from "effect"

/** An instant in an answer: ISO-8601 in UTC with milliseconds. */
export const Timestamp = Schema.String.annotate({
  format: "date-time",
  description: "ISO-8601, UTC, milliseconds",
  examples: ["2026-11-21T08:30:00.000Z"]
})

/** An instant in a request: ISO-8601 with an offset or `Z`, between the years 1970 and 9999. */
export const Instant = Schema.String.check(
  Schema.makeFilter((text: string) => parseInstant(text) !== undefined, {
    expected: "an ISO-8601 instant with an offset, such as 2026-11-21T08:30:00Z"
  })
).annotate({ format: "date-time", examples: ["2026-11-21T08:30:00Z"] })

const shape = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/

/** Reads what `Instant` accepts. `Date.parse` alone would turn the 31st of February into the 3rd of March. */
export const parseInstant = (text: string): Date | undefined => {
  const [, year, month, day] = shape.exec(text) ?? []
  if (year === undefined || Number(year) < 1970) return undefined
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  if (Number(day) > lastDay) return undefined
  const millis = Date.parse(text)
  return Number.isNaN(millis) ? undefined : new Date(millis)
}
