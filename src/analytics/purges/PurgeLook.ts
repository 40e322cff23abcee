import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { siteOfDataset } from "#streams/analytics/Site.ts"
import { AppConfig } from "#src/Config.ts"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { StoreError } from "../store/EventStore.ts"
import { SiteDirectory } from "../sites/Sites.ts"
import { isDead, type PurgedTable, purgedTables } from "./DeadRows.ts"
import { purgedSites } from "./SitePurge.ts"

/** Datasets in one answer of ClickHouse. */
const pageDatasets = 5_000

interface FoundDataset {
  readonly dataset: string
  /** days since 1970-01-01; far in the future for what has no day */
  readonly oldestDay: number
}

/**
 * The sites that have something to delete, whatever became of their jobs: deleted ones of which rows may be left, and those
 * whose stored rows are dead by now, of sites deleted by earlier versions, from logs that came late, or too old to be kept.
 * A site that Postgres does not know is left alone: the stores may not belong together.
 */
export const deadSites = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const clickhouse = yield* ClickHouse
  const sql = yield* SqlClient
  const found = yield* sql<{ id: string }>`
    SELECT id FROM sites WHERE deleted_at IS NOT NULL AND purged_at IS NULL LIMIT ${limits.purgeSites}`
  const sites = new Set(found.map(({ id }) => id))
  for (const table of purgedTables) {
    for (let after: string | undefined = ""; after !== undefined;) {
      const datasets: ReadonlyArray<FoundDataset> = yield* storedDatasets(clickhouse, table, after)
      for (const id of yield* sitesOfDead(datasets)) sites.add(id)
      after = datasets.length < pageDatasets ? undefined : datasets.at(-1)?.dataset
    }
  }
  return [...sites].slice(0, limits.purgeSites)
})

/** On one thread, beside what readers wait for. */
const storedDatasets = (
  clickhouse: ClickHouseService,
  table: PurgedTable,
  after: string
): Effect.Effect<ReadonlyArray<FoundDataset>, StoreError> =>
  clickhouse.query<FoundDataset>(
    `SELECT site AS dataset, ${table === "event_ids" ? "65535" : "toUInt16(min(day))"} AS oldestDay FROM ${table}
    WHERE site > {after:String} GROUP BY site ORDER BY site LIMIT ${pageDatasets}`,
    { after },
    { max_threads: 1 }
  )

/** Memory says which datasets are as they should be; of the others Postgres is asked. */
const sitesOfDead = Effect.fnUntraced(function* (datasets: ReadonlyArray<FoundDataset>) {
  const directory = yield* SiteDirectory
  const nowMillis = yield* Clock.currentTimeMillis
  const suspects = datasets.filter((found) => {
    const site = directory.get(siteOfDataset(found.dataset))
    return site === undefined || isDead({ ...site, isDeleted: false }, found, nowMillis)
  })
  if (suspects.length === 0) return []
  const asked = Array.from(new Set(suspects.map(({ dataset }) => siteOfDataset(dataset))))
  const sites = new Map((yield* purgedSites(asked)).map((site) => [site.id, site]))
  return suspects.flatMap((found) => {
    const site = sites.get(siteOfDataset(found.dataset))
    return site !== undefined && isDead(site, found, nowMillis) ? [site.id] : []
  })
})

/** Deletes the rows of sites that were purged so long ago that no log has anything of them any more. */
export const forgetPurged = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  yield* Effect.gen(function* () {
    const old = yield* sql<{ id: string }>`
      SELECT id FROM sites WHERE purged_at < now() - ${limits.purgedKeptMillis} * interval '1 millisecond'
      LIMIT ${limits.purgeRows} FOR UPDATE SKIP LOCKED`
    const ids = old.map(({ id }) => id)
    if (ids.length > 0) yield* sql`DELETE FROM sites WHERE id = ANY(${ids}::text[])`
  }).pipe(sql.withTransaction)
})
