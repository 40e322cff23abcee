import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"

/**
 * Deletes the rows of a table that have been gone for a day, some at a time; answers how many. Copies in memory have let
 * go of them by then (CachedTable.ts). `gone`: the column that says since when.
 */
export const sweep = Effect.fnUntraced(function* (table: string, gone: string) {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  let deleted = 0
  while (true) {
    const rows = yield* sql`DELETE FROM ${sql(table)} WHERE id IN (
      SELECT id FROM ${sql(table)} WHERE ${sql(gone)} < now() - ${limits.goneMillis} * interval '1 millisecond'
      LIMIT ${limits.sweepRows} FOR UPDATE SKIP LOCKED) RETURNING id`
    deleted += rows.length
    if (rows.length < limits.sweepRows) return deleted
  }
})

/**
 * Sweeps a table every hour. Not for rows that others go on naming: users (referenced by what they had), keys (the ledger
 * is checked against their spend limits, sessions reference them), sites (purges have rules of their own)
 * and subscriptions (those that have ended are listed).
 */
export const layer = (table: string, gone: string) =>
  Sweeps.layer({ name: table.replaceAll("_", "-"), every: "sweepEveryMillis", run: sweep(table, gone) })
