import { type ClickHouseMigration, keepingOldParts } from "#src/infra/clickhouse/Migrations.ts"

const tables = ["events", "visits", "long_visits", "page_names", "counting_epochs", "event_ids"]

export const oldParts: ClickHouseMigration = {
  id: 9,
  name: "old parts",
  statements: tables.map(keepingOldParts)
}
