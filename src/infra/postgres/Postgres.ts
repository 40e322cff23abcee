import * as PgClient from "@effect/sql-pg/PgClient"
import * as PgTypes from "@effect/sql-pg/PgTypes"
import { Effect, Layer, Redacted, Result, Schedule, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"
import { start } from "./EmbeddedPostgres.ts"
import type { DataDirectoryInUse } from "./PostgresFailed.ts"
import { PostgresFailed } from "./PostgresFailed.ts"

/** The column `changed` of tables that are kept in memory has a type that the client does not know: a transaction id, as a bigint. */
const typesWithXid8 = (): PgTypes.Registry => {
  const types = PgTypes.makeRegistry()
  types.register<bigint>(xid8, {
    encode: (value) => {
      const bytes = new Uint8Array(8)
      new DataView(bytes.buffer).setBigUint64(0, value)
      return Result.succeed(bytes)
    },
    decode: (bytes) =>
      Result.succeed(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(0))
  })
  return types
}

/** pg_type.oid */
const xid8 = 5069

/** `postgres://user:password@host:port/database?sslmode=require`; sslmode=disable and none mean plain text. */
const clientLayer = (
  url: Redacted.Redacted,
  limits: Limits
): Layer.Layer<SqlClient | PgClient.PgClient, SqlError> =>
  PgClient.layer({
    url,
    applicationName: "signalbox",
    maxConnections: limits.postgresConnections,
    connectTimeout: limits.postgresConnectMillis,
    // An answer may be lost with the host or the NAT on its way: a connection that only waits would never hear of it.
    keepAlive: limits.postgresKeepAliveMillis,
    types: typesWithXid8()
  })

/** A pool ends when its statements do. One whose reply was lost, amid a COMMIT, must not hold up the end of the server. */
const endingWithin = <A, E, R>(layer: Layer.Layer<A, E, R>, millis: number): Layer.Layer<A, E, R> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Effect.addFinalizer((exit) =>
        Effect.catchTag(abandonedAfter(Scope.close(scope, exit), millis), "TimeoutError", () =>
          Effect.logWarning(`The connections to Postgres did not end in ${millis} ms, and are left`)
        )
      )
      return yield* Layer.buildWithScope(layer, scope)
    })
  )

/** A server that is given may still be starting, beside us in a compose file: asks until it answers, and says so. */
const awaitAnswer = (limits: Limits): Effect.Effect<void, PostgresFailed, SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const waitSeconds = limits.postgresStartMillis / 1_000
    let isTold = false
    const tell = (error: SqlError) =>
      Effect.suspend(() => {
        if (isTold) return Effect.void
        isTold = true
        return Effect.logWarning(
          `Postgres does not answer yet, waiting up to ${waitSeconds} s (${error.message})`
        )
      })
    yield* sql`SELECT 1`.pipe(
      Effect.tapError(tell),
      Effect.retry({
        schedule: Schedule.spaced(200),
        times: Math.ceil(limits.postgresStartMillis / 200)
      }),
      Effect.timeout(limits.postgresStartMillis),
      Effect.mapError(
        (error) => new PostgresFailed({ problem: `Postgres does not answer: ${error.message}`, output: "" })
      )
    )
  })

/**
 * Postgres as a SqlClient: the server of `DATABASE_URL`, else an embedded one that runs as long as the layer lives.
 * Connections are opened as needed and again after a loss.
 */
export const layer: Layer.Layer<
  SqlClient | PgClient.PgClient,
  SqlError | PostgresFailed | DataDirectoryInUse,
  AppConfig
> = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, databaseUrl, limits } = yield* AppConfig
    const url = databaseUrl ?? (yield* start(dataDir, limits)).url
    const client = endingWithin(clientLayer(url, limits), limits.postgresEndMillis)
    return Layer.provideMerge(Layer.effectDiscard(awaitAnswer(limits)), client)
  })
)
