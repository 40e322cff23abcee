import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { randomBytes } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { AppConfig } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseEndpoint } from "#src/infra/clickhouse/ClickHouseEndpoint.ts"
import { start as startEmbeddedClickHouse } from "#src/infra/clickhouse/EmbeddedClickHouse.ts"
import { start as startEmbeddedPostgres } from "#src/infra/postgres/EmbeddedPostgres.ts"
import { migrate } from "#src/infra/postgres/Migrations.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { limits } from "#src/Limits.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import { atDatabase } from "./DatabaseUrl.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** an administrator's access to the Postgres of this run */
    databaseUrl: string
    /** the name of a migrated database to clone */
    templateDatabase: string
    clickhouseUrl: string
    /** the prefix of the names of this run's databases: the rest of them is dropped at its end */
    databasePrefix: string
    /** where files of this run are; removed at its end */
    runDirectory: string
  }
}

/** `DATABASE_URL` and `CLICKHOUSE_URL` make the whole suite run on servers; otherwise embedded ones, for this run. */
const { CLICKHOUSE_URL, DATABASE_URL } = process.env

const administer = (databaseUrl: string, statement: string) =>
  Effect.flatMap(SqlClient, (sql) => sql.unsafe<{ readonly name: string }>(statement)).pipe(
    Effect.provide(connected(databaseUrl))
  )

const connected = (url: string) =>
  Postgres.layer.pipe(Layer.provide(AppConfig.layerOf({ databaseUrl: Redacted.make(url) })))

/** A shared server (TestServer.ts) lives as long as its worker, and never drops its databases. */
const dropLeft = Effect.fnUntraced(function* (databaseUrl: string, clickhouseUrl: string, prefix: string) {
  const left = `starts_with(datname, '${prefix}')`
  for (const { name } of yield* administer(
    databaseUrl,
    `SELECT datname AS name FROM pg_database WHERE ${left}`
  ))
    yield* administer(databaseUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  yield* Effect.gen(function* () {
    const clickhouse = yield* ClickHouse
    const databases = `SELECT name FROM system.databases WHERE startsWith(name, '${prefix}')`
    for (const { name } of yield* clickhouse.query<{ readonly name: string }>(databases))
      yield* clickhouse.command(`DROP DATABASE IF EXISTS ${name} SYNC`)
  }).pipe(
    Effect.provide(
      ClickHouse.layer.pipe(
        Layer.provide(ClickHouseEndpoint.layer),
        Layer.provide(AppConfig.layerOf({ clickhouseUrl: Redacted.make(clickhouseUrl) }))
      )
    )
  )
})

/** Makes the template that test files clone, for as long as the scope lives. */
const makeTemplate = Effect.fnUntraced(function* (databaseUrl: string, name: string) {
  yield* administer(databaseUrl, `CREATE DATABASE ${name}`)
  yield* Effect.addFinalizer(() =>
    Effect.orDie(administer(databaseUrl, `DROP DATABASE ${name} WITH (FORCE)`))
  )
  yield* migrate(postgresMigrations).pipe(Effect.provide(connected(atDatabase(databaseUrl, name))))
})

const startPostgres = Effect.fnUntraced(function* (directory: string) {
  const databaseUrl = DATABASE_URL || Redacted.value((yield* startEmbeddedPostgres(directory, limits)).url)
  const templateDatabase = `signalbox_template_${randomBytes(6).toString("hex")}`
  yield* makeTemplate(databaseUrl, templateDatabase)
  return { databaseUrl, templateDatabase }
})

const startClickHouse = Effect.fnUntraced(function* (directory: string) {
  if (CLICKHOUSE_URL) return CLICKHOUSE_URL
  const { database, password, url, username } = (yield* startEmbeddedClickHouse(directory, limits)).current()
  return `${url.replace("://", `://${username}:${password}@`)}/${database}`
})

/** Starts the stores of a test run, once for all files; every file then has databases of its own (TestStores.ts). */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), "signalbox-test-"))
  const scope = Scope.makeUnsafe()
  const started = await Effect.runPromise(
    Effect.all([startPostgres(directory), startClickHouse(directory)], { concurrency: 2 }).pipe(
      Scope.provide(scope)
    )
  )
  project.provide("databaseUrl", started[0].databaseUrl)
  project.provide("templateDatabase", started[0].templateDatabase)
  project.provide("clickhouseUrl", started[1])
  const prefix = `test_${randomBytes(4).toString("hex")}_`
  project.provide("databasePrefix", prefix)
  project.provide("runDirectory", directory)
  return async () => {
    // Embedded stores go with all that is in them.
    if (DATABASE_URL || CLICKHOUSE_URL)
      await Effect.runPromise(dropLeft(started[0].databaseUrl, started[1], prefix))
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await rm(directory, { recursive: true, force: true })
  }
}
