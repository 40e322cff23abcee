import type { ClickHouseMigration } from "#src/infra/clickhouse/Migrations.ts"
import { analytics } from "./clickhouse/0001_Analytics.ts"
import { noDrafts } from "./clickhouse/0002_NoDrafts.ts"
import { calls } from "./clickhouse/0003_Calls.ts"
import { counting } from "./clickhouse/0004_Counting.ts"

/** In order of their ids. A migration that has been released is never changed: a later one changes what it made. */
export const clickHouseMigrations: ReadonlyArray<ClickHouseMigration> = [analytics, noDrafts, calls, counting]
