import type { VisitorKey } from "#streams/analytics/ResidentDays.ts"

/** Some visitor-days, as a condition on `site`, `day` and `visitor`, which `events` and `visits` both begin with. */
export interface VisitorDays {
  readonly condition: string
}

/** Site ids, days and visitors are spliced into statements as literals: as parameters they would not fit into a URL. */
export const quote = (text: string): string => `'${text.replace(/[\\']/g, (sign) => `\\${sign}`)}'`

/** Visitor-days in one condition: 100 bytes each where every one is of another site; max_query_size is 256 KiB. */
const keysPerCondition = 2_000

const siteDay = ({ day, site }: { readonly site: string; readonly day: number }): string =>
  `site = ${quote(site)} AND day = toDate(${day})`

/** These visitor-days, in as many conditions as it takes. */
export const visitorDaysOf = (keys: ReadonlyArray<VisitorKey>): ReadonlyArray<VisitorDays> => {
  const conditions: Array<VisitorDays> = []
  for (let at = 0; at < keys.length; at += keysPerCondition) {
    // By site-day, as the primary key begins with those.
    const groups = Map.groupBy(keys.slice(at, at + keysPerCondition), siteDay)
    const some = Array.from(
      groups,
      ([group, list]) => `${group} AND visitor IN (${list.map(({ visitor }) => visitor).join(", ")})`
    )
    conditions.push({ condition: some.join(" OR ") })
  }
  return conditions
}

/** The visitors of a site-day above one and up to another; without a bound, from the first and to the last. */
export const visitorRange = (
  of: { readonly site: string; readonly day: number },
  bounds: { readonly above?: bigint | undefined; readonly upTo?: bigint | undefined }
): VisitorDays => {
  const above = bounds.above === undefined ? "" : ` AND visitor > ${bounds.above}`
  const upTo = bounds.upTo === undefined ? "" : ` AND visitor <= ${bounds.upTo}`
  return { condition: `${siteDay(of)}${above}${upTo}` }
}
