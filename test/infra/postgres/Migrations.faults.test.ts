import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { migrate, SchemaIsNewer } from "#src/infra/postgres/Migrations.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import { atDatabase } from "#test/harness/DatabaseUrl.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const run = promisify(execFile)

const names = postgresMigrations.map((migration) => migration.name)

/** An empty database beside the migrated one. */
const emptyDatabase = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { databaseUrl } = yield* TestStores
  const name = `${new URL(databaseUrl).pathname.slice(1)}_empty`
  yield* Effect.acquireRelease(sql`CREATE DATABASE ${sql(name)}`, () =>
    Effect.orDie(sql`DROP DATABASE ${sql(name)} WITH (FORCE)`)
  )
  return atDatabase(databaseUrl, name)
})

describe("Postgres migrations", () => {
  layer(TestStores.layer)((it) => {
    it.effect("are applied once by processes that start together, and each finds the whole schema", () =>
      Effect.gen(function* () {
        const DATABASE_URL = yield* emptyDatabase
        const migrateThere = Effect.promise(() =>
          run(process.execPath, [join(import.meta.dirname, "migrate.mjs")], {
            env: { PATH: process.env["PATH"], DATABASE_URL }
          })
        )
        const results = yield* Effect.all([migrateThere, migrateThere, migrateThere], {
          concurrency: "unbounded"
        })
        const applied: ReadonlyArray<ReadonlyArray<string>> = results.map(({ stdout }) => JSON.parse(stdout))
        assert.deepStrictEqual(applied.flat(), names)
      })
    )

    it.effect("do nothing when all are applied", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* migrate(postgresMigrations), [])
      })
    )

    it.effect("leave nothing of a step that fails", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const broken = {
          id: 1_000,
          name: "broken",
          statements: ["CREATE TABLE half (n integer)", "CREATE nonsense"]
        }
        yield* Effect.flip(migrate([...postgresMigrations, broken]))
        assert.deepStrictEqual(yield* sql`SELECT to_regclass('half')::text AS found`, [{ found: null }])
        assert.deepStrictEqual(yield* migrate(postgresMigrations), [])
      })
    )

    it.effect("refuse a schema that a newer version has made", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const newer = { id: 1_000, name: "newer", statements: [] }
        yield* migrate([...postgresMigrations, newer])
        const error = yield* Effect.flip(migrate(postgresMigrations))
        assert.instanceOf(error, SchemaIsNewer)
        yield* sql`DELETE FROM migrations WHERE id = 1000`
      })
    )

    it.effect("have ids that count up without a gap", () =>
      Effect.sync(() => {
        assert.deepStrictEqual(
          postgresMigrations.map((migration) => migration.id),
          postgresMigrations.map((_, index) => index + 1)
        )
      })
    )
  })
})
