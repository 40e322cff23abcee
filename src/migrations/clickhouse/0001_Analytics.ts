import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"
import { type EventColumn, eventColumns } from "#streams/analytics/EventColumns.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"

/** Sorted ascending within a visitor or a day: differences are small. Everything else is left to ZSTD alone. */
const deltas: Readonly<Record<string, string>> = {
  ts: "Delta(8), ZSTD(1)",
  received: "Delta(8), ZSTD(1)",
  day: "Delta(2), ZSTD(1)",
  start: "Delta(4), ZSTD(1)"
}

const definition = ({ name, type }: EventColumn): string =>
  `\`${name}\` ${type} CODEC(${deltas[name] ?? "ZSTD(1)"})`

const definitions = (columns: ReadonlyArray<EventColumn>): string => columns.map(definition).join(",\n  ")

/**
 * Both tables are read by site and day, and a visitor-day lies together. An insert is synced before it is acknowledged,
 * and a repeated one with the same token is dropped: the log lets go of its records on this table's word.
 */
const durable = `
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  non_replicated_deduplication_window = 1000`

const events = `
CREATE TABLE IF NOT EXISTS events (
  \`log_id\` UInt64 CODEC(ZSTD(1)),
  \`seq\` UInt64 CODEC(Delta(8), ZSTD(1)),
  ${definitions(eventColumns)},
  INDEX of_log (log_id, seq) TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (site, day, visitor, ts)
SETTINGS ${durable}`

const visits = `
CREATE TABLE IF NOT EXISTS visits (
  ${definitions(visitColumns)}
)
ENGINE = ReplacingMergeTree(ver, deleted)
PARTITION BY toYYYYMM(day)
ORDER BY (site, day, visitor, start, part)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`

export const analytics: ClickHouseMigration = { id: 1, name: "analytics", statements: [events, visits] }
