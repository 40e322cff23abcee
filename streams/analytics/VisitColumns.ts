import { attributeColumns } from "./VisitEvent.ts"
import type { EventColumn } from "./EventColumns.ts"

const text = (name: string): EventColumn => ({ name, type: "LowCardinality(String)" })

/**
 * The columns of `visits` in the order in which `VisitRecord` writes them: one absolute row per visit, replaced by a
 * later one of the same (site, start, visitor, part). See streams/analytics/Visits.ts for what they mean.
 * Lists of page views and of goals begin with the same word each: ClickHouse keeps the lengths of such lists once. Pages are
 * numbers (PageIds.ts).
 */
export const visitColumns: ReadonlyArray<EventColumn> = [
  { name: "site", type: "LowCardinality(String)" },
  { name: "day", type: "Date" },
  { name: "start", type: "UInt32" },
  { name: "visitor", type: "UInt64" },
  { name: "part", type: "UInt32" },
  { name: "ver", type: "UInt64" },
  { name: "deleted", type: "UInt8" },
  { name: "visit", type: "UInt32" },
  { name: "more", type: "UInt8" },
  { name: "previous_last", type: "UInt32" },
  { name: "length_s", type: "UInt32" },
  { name: "engaged_ms", type: "UInt64" },
  { name: "pageviews", type: "UInt16" },
  { name: "events", type: "UInt16" },
  { name: "hostname", type: "LowCardinality(String)" },
  ...attributeColumns.map(text),
  { name: "view.page", type: "Array(UInt64)" },
  { name: "view.second", type: "Array(UInt32)" },
  { name: "view.new", type: "Array(UInt8)" },
  { name: "goal.name", type: "Array(LowCardinality(String))" },
  { name: "goal.second", type: "Array(UInt32)" },
  { name: "goal.page", type: "Array(UInt64)" }
]
