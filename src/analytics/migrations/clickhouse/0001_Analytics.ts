import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"
import { type EventColumn, eventColumns } from "#streams/analytics/EventColumns.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"

/** The lists of visits had other names, and paths where they have numbers now (0006_PageIds.ts). */
const listsBefore: Readonly<Record<string, EventColumn>> = {
  "view.page": { name: "pages", type: "Array(String)" },
  "view.second": { name: "page_s", type: "Array(UInt32)" },
  "view.new": { name: "page_new", type: "Array(UInt8)" },
  "goal.name": { name: "goals", type: "Array(LowCardinality(String))" },
  "goal.second": { name: "goal_s", type: "Array(UInt32)" },
  "goal.page": { name: "goal_pages", type: "Array(LowCardinality(String))" }
}

const firstVisitColumns = visitColumns.map((column) => listsBefore[column.name] ?? column)

/** Everything not named here is left to ZSTD alone. Neighbours in the order of the table differ little: */
const eventCodecs: Readonly<Record<string, string>> = {
  day: "Delta(2), ZSTD(1)",
  at_ms: "Delta(4), ZSTD(1)",
  lag_ms: "T64, ZSTD(1)",
  path: "ZSTD(3)"
}

/** Columns that statistics add up are cut to their bits and read at four times the speed of ZSTD, at the same size. */
const counted = "T64, LZ4"

const visitCodecs: Readonly<Record<string, string>> = {
  site: "LZ4",
  start: "Delta(4), LZ4",
  part: counted,
  visit: counted,
  more: counted,
  previous_last: counted,
  length_s: counted,
  engaged_ms: counted,
  pageviews: counted,
  events: counted,
  pages: "ZSTD(3)"
}

/** The same pages come again, but not soon: in blocks of 4 MiB they take a quarter fewer bytes, and no longer to read. */
const largeBlocks = " SETTINGS (min_compress_block_size = 4194304, max_compress_block_size = 4194304)"

const definitions = (columns: ReadonlyArray<EventColumn>, codecs: Readonly<Record<string, string>>): string =>
  columns
    .map(({ name, type }) => {
      const settings = name === "pages" ? largeBlocks : ""
      return `\`${name}\` ${type} CODEC(${codecs[name] ?? "ZSTD(1)"})${settings}`
    })
    .join(",\n  ")

/**
 * By site, day and visitor: a visitor-day lies together, for the fold. An insert is synced before it is acknowledged,
 * and a repeated one with the same token is dropped: the log deletes its records on this table's acknowledgement.
 */
const events = `
CREATE TABLE IF NOT EXISTS events (
  \`log_id\` UInt64 CODEC(ZSTD(1)),
  \`seq\` UInt64 CODEC(Delta(8), ZSTD(1)),
  ${definitions(eventColumns, eventCodecs)},
  \`ts\` DateTime64(3) ALIAS fromUnixTimestamp64Milli(toInt64(toUInt16(day)) * 86400000 + at_ms),
  \`received\` DateTime64(3) ALIAS fromUnixTimestamp64Milli(toUnixTimestamp64Milli(ts) + lag_ms),
  INDEX of_log (log_id, seq) TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (site, day, visitor, at_ms)
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  non_replicated_deduplication_window = 1000`

/**
 * By time: a period is one range of rows, and today's rows overlap nothing older, so that replaced ones are cheap to
 * tell in any number of parts.
 */
const visits = `
CREATE TABLE IF NOT EXISTS visits (
  ${definitions(firstVisitColumns, visitCodecs)}
)
ENGINE = ReplacingMergeTree(ver, deleted)
PARTITION BY toYYYYMM(day)
ORDER BY (site, start, visitor, part)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`

export const analytics: ClickHouseMigration = { id: 1, name: "analytics", statements: [events, visits] }
