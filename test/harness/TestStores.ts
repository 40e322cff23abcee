import type { PgClient } from "@effect/sql-pg/PgClient"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { randomBytes } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { join } from "node:path"
import { inject } from "vitest"
import { AppConfig, type ConfigChanges } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseEndpoint } from "#src/infra/clickhouse/ClickHouseEndpoint.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import * as Stores from "#src/Stores.ts"
import { atDatabase } from "./DatabaseUrl.ts"

/**
 * Real stores for one test file, or for the server that the files of a worker share: a Postgres database, a ClickHouse
 * database and a DATA_DIR of its own, on the servers that globalSetup.ts started, with today's schema. All three are
 * gone when the layer's scope closes.
 *
 *     layer(TestStores.layer)("accounts", (it) => { it.effect("…", () => …) })
 *
 * The layer gives SqlClient, PgClient, ClickHouse, ClickHouseEndpoint and an AppConfig that points at them, and Readiness
 * and Quarantines, where drains show themselves. Processes
 * that a test starts take `databaseUrl` and `clickhouseUrl` as DATABASE_URL and CLICKHOUSE_URL.
 */
export class TestStores extends Context.Service<
  TestStores,
  { readonly databaseUrl: string; readonly clickhouseUrl: string; readonly dataDir: string }
>()("signalbox/test/TestStores") {
  /** The databases alone, without a schema in ClickHouse and without clients. */
  static readonly layerEmpty: Layer.Layer<TestStores> = Layer.effect(
    TestStores,
    Effect.suspend(() => makeDatabases)
  )

  static readonly layer: Layer.Layer<
    TestStores | AppConfig | SqlClient | PgClient | ClickHouse | ClickHouseEndpoint | Readiness | Quarantines,
    Stores.StoresFailed
  > = Layer.suspend(() => TestStores.layerWith({}))

  /** With a configuration that differs from the defaults, and Postgres at the end of a wire of the test's own. */
  static readonly layerWith = (
    changes: ConfigChanges,
    wire: (databaseUrl: string) => Promise<string> = async (databaseUrl) => databaseUrl
  ): Layer.Layer<
    TestStores | AppConfig | SqlClient | PgClient | ClickHouse | ClickHouseEndpoint | Readiness | Quarantines,
    Stores.StoresFailed
  > => {
    const config = Layer.unwrap(
      Effect.gen(function* () {
        const { clickhouseUrl, dataDir, databaseUrl } = yield* TestStores
        return AppConfig.layerOf({
          port: 0,
          dataDir,
          databaseUrl: Redacted.make(yield* Effect.promise(() => wire(databaseUrl))),
          clickhouseUrl: Redacted.make(clickhouseUrl),
          ...changes,
          // A busy machine is no reason to test without a schema.
          limits: { clickhouseWaitMillis: 60_000, ...changes.limits }
        })
      })
    )
    const seen = Quarantines.layer.pipe(Layer.provideMerge(Readiness.layer))
    return Layer.merge(Stores.layer, seen).pipe(
      Layer.provideMerge(config),
      Layer.provideMerge(TestStores.layerEmpty)
    )
  }
}

/** A store that stands still for seconds, as a busy machine's does, is no failure of the file whose databases are made and dropped. */
const patient = { postgresConnectMillis: 60_000, clickhouseSilenceMillis: 60_000 }

const makeDatabases = Effect.gen(function* () {
  const name = `${inject("databasePrefix")}${randomBytes(8).toString("hex")}`
  const dataDir = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(inject("runDirectory"), "data-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true, maxRetries: 5 }))
  )
  const administrator = inject("databaseUrl")
  const administer = (statement: string) =>
    Effect.flatMap(SqlClient, (sql) => sql.unsafe(statement)).pipe(
      Effect.provide(
        Postgres.layer.pipe(
          Layer.provide(AppConfig.layerOf({ databaseUrl: Redacted.make(administrator), limits: patient }))
        )
      ),
      Effect.orDie
    )
  yield* Effect.acquireRelease(
    administer(`CREATE DATABASE ${name} TEMPLATE ${inject("templateDatabase")}`),
    () => administer(`DROP DATABASE ${name} WITH (FORCE)`)
  )
  const clickhouseUrl = atDatabase(inject("clickhouseUrl"), name)
  yield* Effect.acquireRelease(Effect.void, () =>
    Effect.flatMap(ClickHouse, (clickhouse) =>
      clickhouse.command(`DROP DATABASE IF EXISTS ${name} SYNC`)
    ).pipe(
      Effect.provide(
        ClickHouse.layer.pipe(
          Layer.provide(ClickHouseEndpoint.layer),
          Layer.provide(
            AppConfig.layerOf({ clickhouseUrl: Redacted.make(inject("clickhouseUrl")), limits: patient })
          )
        )
      ),
      Effect.orDie
    )
  )
  return { databaseUrl: atDatabase(administrator, name), clickhouseUrl, dataDir }
})
