import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"

/**
 * Tables of development versions before 0.1.0 had the same names and other columns. They cannot be told by a number, and
 * nothing may be written into them: the start says so instead.
 */
export const noDrafts: ClickHouseMigration = {
  id: 2,
  name: "no drafts",
  statements: [
    `SELECT throwIf(count() > 0, 'These tables are of a development version before 0.1.0, which this one cannot read: give another DATA_DIR or CLICKHOUSE_URL')
    FROM system.columns WHERE database = currentDatabase() AND table = 'visits' AND name = 'single'`
  ]
}
