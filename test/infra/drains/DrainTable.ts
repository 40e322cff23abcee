import type { PgClient } from "@effect/sql-pg/PgClient"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { LogName } from "#schemas/system/QuarantineApi.ts"
import { encode as encodeEvent } from "#streams/analytics/EventRecord.ts"
import * as ImportRecord from "#streams/analytics/ImportRecord.ts"
import type { DurableLog } from "#streams/kernel/DurableLog.ts"
import { nothingDrawn } from "#streams/llm/CallRecord.ts"
import { encode as encodeCall } from "#streams/llm/CallRow.ts"
import { RequestCounts } from "#src/accounts/RequestCounts.ts"
import { EventLog, ImportLog } from "#src/analytics/ingest/EventLog.ts"
import { EventDrain } from "#src/analytics/store/EventDrain.ts"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import type { AppConfig } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import type { Quarantines } from "#src/infra/drains/Quarantines.ts"
import type { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { LedgerDrain } from "#src/llm/ledger/LedgerDrain.ts"
import { LimitStore } from "#src/llm/ledger/LimitStore.ts"
import { CallDrain } from "#src/llm/usage/CallDrain.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { storedEvent } from "#test/analytics/Events.ts"
import { callRecord } from "#test/llm/usage/Calls.ts"

/** A drain as the server builds it, over the log that it empties. */
export class RunningDrain extends Context.Service<
  RunningDrain,
  {
    /** Returns once the record is in the log, on the disk. It is known in its store by its mark. */
    readonly append: (mark: string) => Effect.Effect<void>
    /** Fails while the store does not take what was appended before. */
    readonly flush: Effect.Effect<unknown, { readonly message: string }>
  }
>()("signalbox/test/RunningDrain") {}

/** Stores, and the places where drains show themselves. */
export type Ground = AppConfig | SqlClient | PgClient | ClickHouse | Readiness | Quarantines

export interface DrainCase {
  readonly name: LogName
  readonly store: "clickhouse" | "postgres"
  /** its line on `/readyz`; undefined: it has none */
  readonly component: string | undefined
  /** its gauges and counters on `/metrics`, without the beginning that all have */
  readonly metrics: ReadonlyArray<string>
  /** false: what is not yet in the store is in memory, and ends with the process */
  readonly isDurable: boolean
  readonly layer: Layer.Layer<RunningDrain, { readonly message: string }, Ground>
  /** Makes the store know those that records of these marks are about. */
  readonly prepare: (marks: ReadonlyArray<string>) => Effect.Effect<void, unknown, SqlClient>
  /** where the marks are: one row a record, unless `times` sums what is in it */
  readonly table: string
  readonly column: string
  readonly times: string
}

const nothing = () => Effect.void

const appendTo =
  (log: DurableLog, recordOf: (mark: string) => Uint8Array) =>
  (mark: string): Effect.Effect<void> =>
    Effect.orDie(Effect.asVoid(log.appendEffect(recordOf(mark))))

let visitors = 0n

const eventOf = (path: string): Uint8Array =>
  Uint8Array.from(encodeEvent(storedEvent({ path, visitor: ++visitors })))

const eventDrain = (log: Effect.Effect<DurableLog, never, EventLog | ImportLog>, recordOf: typeof eventOf) =>
  Layer.effect(
    RunningDrain,
    Effect.gen(function* () {
      const drain = yield* EventDrain
      return { append: appendTo(yield* log, recordOf), flush: drain.flush(storedEvent().site) }
    })
  ).pipe(
    Layer.provide(EventDrain.layer),
    Layer.provide(Layer.effect(EventSink.EventSink, EventSink.make())),
    Layer.provide(Layer.merge(EventLog.layer, ImportLog.layer))
  )

const callOf = (mark: string): Uint8Array =>
  encodeCall(callRecord({ id: mark, requested: mark, settlement: { ...nothingDrawn, loss: "1" } }))

const intoClickHouse = { store: "clickhouse", isDurable: true, prepare: nothing, times: "count()" } as const

/** Every drain of the server. */
export const drainTable: ReadonlyArray<DrainCase> = [
  {
    ...intoClickHouse,
    name: "events",
    metrics: ["events_behind", "events_drained_total", "events_drain_failures_total", "events_batches_total"],
    component: undefined,
    layer: eventDrain(EventLog, eventOf),
    table: "events",
    column: "path"
  },
  {
    ...intoClickHouse,
    name: "imports",
    metrics: ["events_imports_behind", "events_imports_drained_total", "events_drain_failures_total"],
    component: undefined,
    layer: eventDrain(ImportLog, (mark) => ImportRecord.encode({ name: "a", line: 0 }, eventOf(mark))),
    table: "events",
    column: "path"
  },
  {
    ...intoClickHouse,
    name: "calls",
    metrics: ["model_behind", "model_drain_failures_total"],
    component: "calls",
    layer: Layer.effect(
      RunningDrain,
      Effect.gen(function* () {
        const { flush } = yield* CallDrain
        return { append: appendTo((yield* CallLog).log, callOf), flush }
      })
    ).pipe(Layer.provide(CallDrain.layer), Layer.provide(CallLog.layer)),
    table: "calls",
    column: "requested"
  },
  {
    name: "ledger",
    metrics: ["ledger_behind", "ledger_booking_failures_total"],
    store: "postgres",
    component: "ledger",
    isDurable: true,
    layer: Layer.effect(
      RunningDrain,
      Effect.gen(function* () {
        const { flush } = yield* LedgerDrain
        return { append: appendTo((yield* CallLog).log, callOf), flush }
      })
    ).pipe(Layer.provide(LedgerDrain.layer), Layer.provide(LimitStore.layer), Layer.provide(CallLog.layer)),
    prepare: nothing,
    table: "entries",
    column: "request_id",
    times: "count(*)"
  },
  {
    name: "activity",
    metrics: [],
    store: "postgres",
    component: undefined,
    isDurable: false,
    layer: Layer.effect(
      RunningDrain,
      Effect.map(RequestCounts, ({ ofUser, record }) => ({
        append: (mark: string) => Effect.sync(() => record(mark, false, Date.now())),
        flush: ofUser("")
      }))
    ).pipe(Layer.provide(RequestCounts.layer)),
    prepare: (marks) =>
      Effect.flatMap(
        SqlClient,
        (sql) => sql`INSERT INTO users (id, email, name, role)
          SELECT id, id || '@example.org', 'x', 'user' FROM unnest(${marks}::text[]) AS id`
      ),
    table: "request_counts",
    column: "user_id",
    times: "sum(requests)"
  }
]

/** How often the store has each mark that begins so. */
export const storedMarks = ({ column, store, table, times }: DrainCase, prefix: string) =>
  Effect.gen(function* () {
    const rows =
      store === "clickhouse"
        ? yield* (yield* ClickHouse).query<{ readonly mark: string; readonly n: number }>(
            `SELECT ${column} AS mark, ${times} AS n FROM ${table} WHERE startsWith(${column}, {prefix:String})
             GROUP BY mark`,
            { prefix }
          )
        : yield* (yield* SqlClient).unsafe<{ readonly mark: string; readonly n: number }>(
            `SELECT ${column} AS mark, ${times}::int AS n FROM ${table} WHERE starts_with(${column}, $1) GROUP BY 1`,
            [prefix]
          )
    return new Map(rows.map(({ mark, n }) => [mark, Number(n)]))
  })

/** Runs a statement in the drain's store. */
export const inStore = ({ store }: DrainCase, statement: string) =>
  Effect.gen(function* () {
    if (store === "clickhouse") return yield* (yield* ClickHouse).command(statement)
    yield* (yield* SqlClient).unsafe(statement)
  })
