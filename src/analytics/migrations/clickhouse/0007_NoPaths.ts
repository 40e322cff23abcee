import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"
import { each } from "./0006_PageIds.ts"

/** A default that names a list would keep it. */
export const noPaths: ClickHouseMigration = {
  id: 7,
  name: "no paths in visits",
  statements: [
    `ALTER TABLE visits ${each(({ name, type }) => `MODIFY COLUMN \`${name}\` DEFAULT CAST([], 'Array(${type})')`)}`,
    `ALTER TABLE visits ${each(({ before }) => `DROP COLUMN IF EXISTS ${before}`)} SETTINGS mutations_sync = 2`
  ]
}
