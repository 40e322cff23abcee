import { Effect } from "effect"
import { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { StoreError } from "../store/EventStore.ts"
import type { CountingLeaseService, Held } from "./CountingLease.ts"

/**
 * The condition under which rows of an epoch are taken: no later one has begun. ClickHouse looks at it after the insert is
 * in `system.processes`, so one that a later epoch did not see there comes too late and is refused.
 */
export const fenceOf = (epoch: number): string =>
  `throwIf((SELECT max(epoch) FROM counting_epochs) > ${epoch}, 'another process counts') = 0`

/** FUNCTION_THROW_IF_VALUE_IS_NON_ZERO of system.errors. */
const fenced = 395

const isFenced = (error: StoreError): boolean => error._tag === "ClickHouseFailed" && error.code === fenced

/** The last epoch that ClickHouse knows; 0 where there is none. */
export const highestEpoch = (clickhouse: ClickHouseService): Effect.Effect<number, StoreError> =>
  clickhouse
    .query<{ readonly epoch: number }>("SELECT toFloat64(max(epoch)) AS epoch FROM counting_epochs")
    .pipe(Effect.map(([row]) => Number(row?.epoch ?? 0)))

/** From now on visits of earlier epochs are refused, but for those whose insert has begun. */
export const raise = (clickhouse: ClickHouseService, epoch: number): Effect.Effect<void, StoreError> =>
  clickhouse.insert("counting_epochs", ["epoch"], new TextEncoder().encode(JSON.stringify({ epoch })), {
    format: "JSONEachRow"
  })

const ofVisits = `query_kind = 'Insert' AND current_database = currentDatabase() AND positionCaseInsensitive(query, 'visits') > 0`

/** How many inserts into visits have begun and not ended: those of earlier epochs, while this one writes none. */
export const visitInserts = (clickhouse: ClickHouseService): Effect.Effect<number, StoreError> =>
  clickhouse
    .query<{ readonly inserts: number }>(
      `SELECT toFloat64(count()) AS inserts FROM system.processes WHERE ${ofVisits}`
    )
    .pipe(Effect.map(([row]) => Number(row?.inserts ?? 0)))

/** Ends them, where the account may: a frozen process may keep one open for as long as ClickHouse lets it. */
export const killVisitInserts = (clickhouse: ClickHouseService): Effect.Effect<void, StoreError> =>
  clickhouse.command(`KILL QUERY WHERE ${ofVisits} ASYNC`)

/** Rows of an earlier epoch are refused for no fault of theirs: the turn waits until this process counts again. */
export const fencedOff = <A>(
  lease: CountingLeaseService,
  held: Held | undefined,
  use: Effect.Effect<A, StoreError>
) =>
  Effect.catchIf(use, isFenced, (cause): Effect.Effect<never, StoreError> => {
    if (held !== undefined) lease.superseded(held.epoch)
    return Effect.fail(new ClickHouseUnavailable({ problem: "another process counts", cause }))
  })
