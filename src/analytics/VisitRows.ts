import { partSeconds } from "#streams/analytics/Visits.ts"

/** A stretch of time in epoch seconds, `[from, to)`. */
export interface Span {
  readonly from: number
  readonly to: number
}

const daySeconds = 86_400

/** Rows of `visits` that begin within a span, in terms of the primary key. */
export const beginWithin = ({ from, to }: Span): string =>
  `site = {site:String} AND start >= ${from} AND start < ${to}`

export const beginWithinAny = (spans: ReadonlyArray<Span>): string =>
  `site = {site:String} AND (${spans.map(({ from, to }) => `start >= ${from} AND start < ${to}`).join(" OR ")})`

/** What may reach into a span: a row is shorter than `partSeconds`. */
export const reachInto = ({ from, to }: Span): Span => ({ from: Math.max(0, from - partSeconds), to })

/** The UTC days that a span touches: a visit is within one, and so are all of its rows. */
export const wholeDays = ({ from, to }: Span): Span => {
  const reached = reachInto({ from, to })
  return {
    from: Math.floor(reached.from / daySeconds) * daySeconds,
    to: Math.ceil(to / daySeconds) * daySeconds
  }
}

/**
 * A visitor of one day as one number: a visitor's number is good for its day only. The days' hashes keep equal numbers
 * of two days apart, as surely as 64 bits keep two visitors of one day.
 */
export const identity = "bitXor(visitor, intHash64(toUInt16(day)))"
