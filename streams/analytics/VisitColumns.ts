import { attributeColumns } from "./VisitEvent.ts"
import type { EventColumn } from "./EventColumns.ts"

const text = (name: string): EventColumn => ({ name, type: "LowCardinality(String)" })

/**
 * The columns of `visits` in the order in which `VisitRecord` writes them: one absolute row per visit, replaced by a
 * later one of the same (site, start, visitor, part). See streams/analytics/Visits.ts for what they mean.
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
  { name: "pages", type: "Array(String)" },
  { name: "page_s", type: "Array(UInt32)" },
  { name: "page_new", type: "Array(UInt8)" },
  { name: "goals", type: "Array(LowCardinality(String))" },
  { name: "goal_s", type: "Array(UInt32)" },
  { name: "goal_pages", type: "Array(LowCardinality(String))" }
]
