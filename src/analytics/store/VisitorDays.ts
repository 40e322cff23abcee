import type { VisitorKey } from "#streams/analytics/ResidentDays.ts"
import { daySeconds } from "./VisitRows.ts"

/** Some visitor-days, as conditions that each table's primary key makes quick. */
export interface VisitorDays {
  readonly ofEvents: string
  readonly ofVisits: string
}

/** Site ids, days and visitors are spliced into statements as literals: as parameters they would not fit into a URL. */
export const quote = (text: string): string => `'${text.replace(/[\\']/g, (sign) => `\\${sign}`)}'`

/** Visitor-days in one condition: 330 bytes each where every one is of another site; max_query_size is 256 KiB. */
const keysPerCondition = 700

/** Visitors of a day that are looked up one by one: of more, each granule of the day would have one. */
const soughtMax = 200

interface SiteDay {
  readonly site: string
  readonly day: number
}

const eventsOfDay = ({ day, site }: SiteDay): string => `site = ${quote(site)} AND day = toDate(${day})`

/** The day leaves the other months' partitions alone, the start is what the index knows. */
const visitsOfDay = ({ day, site }: SiteDay): string =>
  `site = ${quote(site)} AND day = toDate(${day}) AND start >= ${day * daySeconds} AND start < ${(day + 1) * daySeconds}`

/** `visits` is in the order of time: when a visitor came is asked first, so that only those granules are read whole. */
const visitsOf = (siteDay: SiteDay, visitors: ReadonlyArray<bigint>): string => {
  const theirs = `${visitsOfDay(siteDay)} AND visitor IN (${visitors.join(", ")})`
  return visitors.length > soughtMax
    ? theirs
    : `${theirs} AND start IN (SELECT start FROM visits WHERE ${theirs})`
}

/** These visitor-days, in as many conditions as it takes. */
export const visitorDaysOf = (keys: ReadonlyArray<VisitorKey>): ReadonlyArray<VisitorDays> => {
  const conditions: Array<VisitorDays> = []
  for (let at = 0; at < keys.length; at += keysPerCondition) {
    const groups = Map.groupBy(keys.slice(at, at + keysPerCondition), eventsOfDay)
    const ofEvents: Array<string> = []
    const ofVisits: Array<string> = []
    for (const [siteDay, list] of groups) {
      const visitors = list.map(({ visitor }) => visitor)
      ofEvents.push(`${siteDay} AND visitor IN (${visitors.join(", ")})`)
      if (list[0] !== undefined) ofVisits.push(visitsOf(list[0], visitors))
    }
    conditions.push({ ofEvents: ofEvents.join(" OR "), ofVisits: ofVisits.join(" OR ") })
  }
  return conditions
}

/** The visitors of a site-day above one and up to another; without a bound, from the first and to the last. */
export const visitorRange = (
  siteDay: SiteDay,
  bounds: { readonly above?: bigint | undefined; readonly upTo?: bigint | undefined }
): VisitorDays => {
  const above = bounds.above === undefined ? "" : ` AND visitor > ${bounds.above}`
  const upTo = bounds.upTo === undefined ? "" : ` AND visitor <= ${bounds.upTo}`
  const range = `${above}${upTo}`
  return { ofEvents: `${eventsOfDay(siteDay)}${range}`, ofVisits: `${visitsOfDay(siteDay)}${range}` }
}
