import { firstKeptDay } from "#streams/analytics/EventTime.ts"
import { quote } from "../store/VisitorDays.ts"

/** The tables of ClickHouse that name sites. */
export const purgedTables = ["events", "visits", "long_visits", "page_names", "event_ids"] as const
export type PurgedTable = (typeof purgedTables)[number]

/** A site as its purge sees it, deleted or not. */
export interface PurgedSite {
  readonly id: string
  /** the one that is shown, unless the site is deleted */
  readonly dataset: string
  readonly isDeleted: boolean
  readonly retentionDays: number | null
}

/** All datasets of a site, in terms of the primary key: no id is the beginning of another. */
const ofSite = (id: string): string => `site >= ${quote(id)} AND site < ${quote(`${id}~~`)}`

/** Which rows of a site are in no figure and never will be again: they may be deleted at any time, by any process. */
export const deadRows = (
  { dataset, id, isDeleted, retentionDays }: PurgedSite,
  table: PurgedTable,
  nowMillis: number
): string => {
  if (isDeleted) return ofSite(id)
  const isOfEarlier = `site != ${quote(dataset)}`
  const day = firstKeptDay(retentionDays, nowMillis)
  const isDead = table === "event_ids" || day === 0 ? isOfEarlier : `(${isOfEarlier} OR day < toDate(${day}))`
  return `${ofSite(id)} AND ${isDead}`
}

/** Whether a dataset that the store has, or its oldest day, is dead. */
export const isDead = (
  site: PurgedSite,
  found: { readonly dataset: string; readonly oldestDay: number },
  nowMillis: number
): boolean =>
  site.isDeleted ||
  site.dataset !== found.dataset ||
  found.oldestDay < firstKeptDay(site.retentionDays, nowMillis)
