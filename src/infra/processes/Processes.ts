import { Context, Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import type { ClusterAddress } from "#src/infra/cluster/ClusterTransport.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"

/**
 * The server processes on this Postgres. Each notes every few seconds that it is alive, on Postgres's clock; one that ends
 * in peace takes its row away. (The ledger's owners are durable logs, which outlive their process.)
 */
export class Processes extends Context.Service<
  Processes,
  {
    /** this process, by a name that is new with every start */
    readonly id: string
    /** the live ones among these */
    readonly alive: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>, SqlError>
    /** Where others of the cluster reach it; undefined: it is not alive, or has no address. */
    readonly addressOf: (id: string) => Effect.Effect<ClusterAddress | undefined, SqlError>
  }
>()("signalbox/Processes") {
  static readonly layer = Layer.effect(
    Processes,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { cluster, limits } = yield* AppConfig
      const id = newId("prc")
      const startedAt = performance.now()
      // A row that was taken away meanwhile comes again, with the time of the start.
      const beat = Effect.suspend(
        () => sql`INSERT INTO processes (id, started_at, host, port) VALUES (${id},
            clock_timestamp() - ${performance.now() - startedAt} * interval '1 millisecond',
            ${cluster?.host ?? null}, ${cluster?.port ?? null})
          ON CONFLICT (id) DO UPDATE SET alive_at = clock_timestamp()`
      )
      const forget = sql`DELETE FROM processes WHERE id IN (SELECT id FROM processes
        WHERE alive_at < clock_timestamp() - ${limits.processForgetMillis} * interval '1 millisecond'
        FOR UPDATE SKIP LOCKED)`
      yield* Effect.andThen(beat, forget)
      // Its work need not wait until it counts as dead.
      yield* Effect.addFinalizer(() =>
        Effect.catch(
          Effect.timeout(sql`DELETE FROM processes WHERE id = ${id}`, limits.processBeatMillis),
          (error) => Effect.logWarning("Work of this process is taken over when it counts as dead", error)
        )
      )
      // One answer that is lost must not be the last sign of life.
      const every = (effect: Effect.Effect<unknown, SqlError>, millis: number) =>
        Effect.timeout(effect, limits.processBeatMillis).pipe(
          Effect.catch((error) => Effect.logDebug("No sign of life could be given", error)),
          Effect.repeat(Schedule.spaced(millis)),
          Effect.delay(millis),
          Effect.forkScoped
        )
      yield* every(beat, limits.processBeatMillis)
      yield* every(forget, limits.processForgetMillis)

      return Processes.of({
        id,
        alive: (ids) =>
          Effect.map(
            sql<{ id: string }>`SELECT id FROM unnest(${ids}::text[]) AS asked (id)
              WHERE ${isAlive(sql, sql`asked.id`, limits)}`,
            (rows) => new Set(rows.map((row) => row.id))
          ),
        addressOf: (asked) =>
          Effect.map(
            sql<ClusterAddress>`SELECT a.host, a.port FROM processes AS a
              WHERE a.id = ${asked} AND a.host IS NOT NULL AND ${isAlive(sql, sql`a.id`, limits)}`,
            ([address]) => address
          )
      })
    })
  )
}

/** Whether the process that a column names is alive: a condition for statements of rooms. `id` names its table, as `s.owner`. */
export const isAlive = (sql: SqlClient, id: Fragment, { processDeadMillis }: Limits): Fragment =>
  sql`EXISTS (SELECT 1 FROM processes AS p WHERE p.id = ${id}
    AND p.alive_at > clock_timestamp() - ${processDeadMillis} * interval '1 millisecond')`
