import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"

/** In order of their ids. A migration that has been released is never changed: a later one changes what it made. */
export const clickHouseMigrations: ReadonlyArray<ClickHouseMigration> = []
