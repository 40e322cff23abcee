import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import type { ClickHouseService } from "./ClickHouse.ts"
import type { ClickHouseFailed, ClickHouseUnavailable } from "./ClickHouseFailed.ts"

type StoreError = ClickHouseUnavailable | ClickHouseFailed

/** The mapping of a log's batch to rows of one table, whose columns `log_id` and `seq` give the origin of each. */
interface OnceOptions<Present> {
  readonly batch: SinkBatch
  /** the same batch was tried before, by this process */
  readonly isRepeated: boolean
  /** inserts the rows of the offsets that are wanted */
  readonly insert: (isWanted: (offset: number) => boolean, token: string) => Effect.Effect<void, StoreError>
  /** the offsets of the batch that are in the table, each with what there is to know of it */
  readonly present: Effect.Effect<ReadonlyMap<number, Present>, StoreError>
}

/**
 * Inserts a batch's rows exactly once, and answers which were there before. A batch is repeated under its own token.
 * After a crash, or where a store that was killed may know the token of an attempt whose rows it lost, present rows are
 * queried and only missing ones inserted.
 */
export const insertOnce = Effect.fnUntraced(function* <Present>(
  clickhouse: ClickHouseService,
  { batch, insert, isRepeated, present }: OnceOptions<Present>
): Effect.fn.Return<ReadonlyMap<number, Present>, StoreError> {
  if (!batch.recovering) yield* insert(() => true, batch.token)
  if (!batch.recovering && !isRepeated) return new Map()
  while ((yield* insertsUnderWay(clickhouse, batch.logId)) > 0) yield* Effect.sleep(100)
  const found = yield* present
  // A token of its own: it finds this insert among those under way, and never equals one with other rows.
  const token = `${batch.token}:${randomUUID()}`
  if (found.size < batch.records.length) yield* insert((offset) => !found.has(offset), token)
  return found
})

/** The number of inserts of this log's batches, of a process that is gone, that ClickHouse still works on. */
const insertsUnderWay = (clickhouse: ClickHouseService, logId: bigint) =>
  clickhouse
    .query<{ readonly inserts: number }>(
      `SELECT count() AS inserts FROM system.processes
      WHERE query_kind = 'Insert' AND startsWith(Settings['insert_deduplication_token'], {token:String})`,
      { token: `${logId}:` }
    )
    .pipe(Effect.map((rows) => Number(rows[0]?.inserts ?? 0)))
