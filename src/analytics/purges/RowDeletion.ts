import { Effect, Schema } from "effect"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { StoreError } from "../store/EventStore.ts"
import { quote } from "../store/VisitorDays.ts"
import { type PurgedTable, purgedTables } from "./DeadRows.ts"

/** ClickHouse began to delete rows and cannot go on; it tries again by itself. */
export class DeletionStuck extends Schema.TaggedError<DeletionStuck>()("DeletionStuck", {
  table: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `ClickHouse does not get on with deleting rows of ${this.table}: ${this.problem}`
  }
}

/** Pause between two looks whether a deletion is done. */
const lookMillis = 50

interface Unfinished {
  readonly waiting: number
  readonly problem: string
}

/** Waits for the deletions of a table that were begun: they outlive their callers, and ClickHouse itself. */
const rest = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  table: PurgedTable
): Effect.fn.Return<void, StoreError | DeletionStuck> {
  for (;;) {
    const [found] = yield* clickhouse.query<Unfinished>(
      `SELECT toFloat64(count()) AS waiting, max(latest_fail_reason) AS problem FROM system.mutations
      WHERE database = currentDatabase() AND table = {table:String} AND NOT is_done AND NOT is_killed`,
      { table }
    )
    if (found === undefined || found.waiting === 0) return
    if (found.problem !== "") return yield* new DeletionStuck({ table, problem: found.problem })
    yield* Effect.sleep(lookMillis)
  }
})

/** ClickHouse is told of a deletion and asked for it, so that none of its few connections waits meanwhile. */
const unwaited = { lightweight_deletes_sync: 0, mutations_sync: 0 }

interface DeletionLimits {
  /** rows of one statement; of more, each month has a statement of its own … */
  readonly purgeStatementRows: number
  /** … with such a pause behind it */
  readonly purgeRestMillis: number
}

/**
 * Deletes rows of a table: ClickHouse marks them, which reads and rewrites nothing else of their parts. Answers how many
 * there were. Cut off anywhere it may be called again.
 */
export const deleteRows = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  table: PurgedTable,
  where: string,
  { purgeRestMillis, purgeStatementRows }: DeletionLimits
): Effect.fn.Return<number, StoreError | DeletionStuck> {
  yield* rest(clickhouse, table)
  const months = yield* clickhouse.query<{ readonly id: string; readonly found: number }>(
    `SELECT _partition_id AS id, toFloat64(count()) AS found FROM ${table} WHERE ${where} GROUP BY id ORDER BY id`
  )
  const rows = months.reduce((sum, { found }) => sum + found, 0)
  const places =
    rows > purgeStatementRows ? months.map(({ id }) => `IN PARTITION ID ${quote(id)}`) : rows > 0 ? [""] : []
  for (const place of places) {
    yield* clickhouse.command(`DELETE FROM ${table} ${place} WHERE ${where}`, {}, unwaited)
    yield* rest(clickhouse, table)
    yield* Effect.sleep(purgeRestMillis)
  }
  return rows
})

/**
 * Takes the deleted rows of one month of a table from the disk: its parts are written anew without them. Merges do the
 * same, but never of parts that are large already. Answers whether there may be more.
 */
export const dropDeleted = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService
): Effect.fn.Return<boolean, StoreError | DeletionStuck> {
  const masked = yield* clickhouse.query<{ readonly table: PurgedTable; readonly id: string }>(
    `SELECT table, partition_id AS id FROM system.parts
    WHERE database = currentDatabase() AND table IN (${purgedTables.map(quote).join(", ")}) AND active
      AND has_lightweight_delete
    GROUP BY table, id ORDER BY table, id LIMIT 2`
  )
  const [first] = masked
  if (first === undefined) return false
  yield* rest(clickhouse, first.table)
  const statement = `ALTER TABLE ${first.table} APPLY DELETED MASK IN PARTITION ID ${quote(first.id)}`
  yield* clickhouse.command(statement, {}, unwaited)
  yield* rest(clickhouse, first.table)
  return masked.length > 1
})
