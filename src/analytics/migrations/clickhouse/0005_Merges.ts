import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"

/**
 * Parts are merged later and more at a time. At the default of 5 merging took half of all that ClickHouse did for an event
 * (decision 0007); there are half as many parts again at any time.
 */
const mergeSelectorBase = 10

export const merges: ClickHouseMigration = {
  id: 5,
  name: "merges",
  statements: ["events", "visits"].map(
    (table) => `ALTER TABLE ${table} MODIFY SETTING merge_selector_base = ${mergeSelectorBase}`
  )
}
