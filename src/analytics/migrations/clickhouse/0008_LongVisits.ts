import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"

/** A column that one of these statements names cannot be dropped while the view is there. */
const columns = visitColumns.map(({ name }) => `\`${name}\``).join(", ")

/**
 * The rows of visits that have several, once more: they are few, and a filter on whole visits puts them together without a
 * look at all others. Rows that were taken back have a `visit` too, so they end here as they do in `visits`.
 */
export const longVisits: ClickHouseMigration = {
  id: 8,
  name: "long visits",
  statements: [
    `CREATE TABLE IF NOT EXISTS long_visits AS visits
    ENGINE = ReplacingMergeTree(ver, deleted)
    ORDER BY (site, start, visitor, part)
    SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
    `CREATE MATERIALIZED VIEW IF NOT EXISTS to_long_visits TO long_visits AS
    SELECT ${columns} FROM visits WHERE visit != 0`,
    `INSERT INTO long_visits (${columns}) SELECT ${columns} FROM visits WHERE visit != 0`
  ]
}
