import { type ClickHouseMigration, keepingOldParts } from "#src/infra/clickhouse/Migrations.ts"

export const oldCallParts: ClickHouseMigration = {
  id: 10,
  name: "old parts of calls",
  statements: [keepingOldParts("calls")]
}
