import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { EventIds } from "../ingest/EventIds.ts"
import { deadRows, type PurgedSite, purgedTables } from "./DeadRows.ts"
import { deleteRows } from "./RowDeletion.ts"

interface SiteState extends PurgedSite {
  /** since its deletion or last reset; null: neither was */
  readonly diedMillis: number | null
}

/** These sites as Postgres has them, deleted ones too. */
export const purgedSites = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient
  return yield* sql<SiteState>`
    SELECT id, dataset, deleted_at IS NOT NULL AS "isDeleted", retention_days AS "retentionDays",
      (extract(epoch FROM now() - greatest(deleted_at, reset_at)) * 1000)::float8 AS "diedMillis"
    FROM sites WHERE id = ANY(${ids}::text[])`
})

/**
 * Deletes what is dead of one site: all of a deleted one, the time before its last reset, the days before those that it
 * keeps. Rows come to a dead dataset a little longer: of requests under way, of logs, from processes that hear of it a
 * moment later. Answers for how many milliseconds they may; the purge is to be repeated then. 0: it is done.
 */
export const purgeSite = Effect.fnUntraced(function* (id: string) {
  const { limits } = yield* AppConfig
  const clickhouse = yield* ClickHouse
  const ids = yield* EventIds
  const [site] = yield* purgedSites([id])
  if (site === undefined) return 0
  const nowMillis = yield* Clock.currentTimeMillis
  let deleted = 0
  for (const table of purgedTables) {
    const where = deadRows(site, table, nowMillis)
    deleted += yield* deleteRows(clickhouse, table, where, limits)
  }
  const kept = site.isDeleted ? undefined : site.dataset
  yield* Effect.sync(() => ids.forget(id, kept))
  yield* deleteRecords(id, kept)
  if (deleted > 0) yield* Effect.logInfo(`${deleted} rows of the site ${id} were deleted`)
  const leftMillis = site.diedMillis === null ? 0 : limits.purgeSettleMillis - site.diedMillis
  if (leftMillis > 0) return leftMillis
  if (site.isDeleted) yield* forgetSite(id)
  return 0
})

/** Deletes what Postgres has under the site's datasets, but for the one that is kept. */
const deleteRecords = Effect.fnUntraced(function* (
  id: string,
  kept: string | undefined
): Effect.fn.Return<void, SqlError, SqlClient | AppConfig> {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const isDead = sql`site = ${id} AND dataset IS DISTINCT FROM ${kept ?? null}::text`
  const some = { drops: sql``, imports: sql`ORDER BY part_of IS NULL` }
  for (const [table, order] of Object.entries(some)) {
    while (true) {
      // Imports that continue others go before those.
      const gone = yield* sql`DELETE FROM ${sql(table)} WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM ${sql(table)} WHERE ${isDead} ${order} LIMIT ${limits.purgeRows})) RETURNING 1`
      if (gone.length < limits.purgeRows) break
    }
  }
})

/** Only the id stays, so that events that turn up later are known to be a deleted site's. */
const forgetSite = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient
  yield* sql`UPDATE sites SET purged_at = now(), name = '', domain = '', visitor_secret = ''
    WHERE id = ${id} AND deleted_at IS NOT NULL AND purged_at IS NULL`
})
