import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** One step of the schema: its statements run in one transaction, once. */
export interface PostgresMigration {
  readonly id: number
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

/** The database has been migrated by a newer version of this program than the one that starts. */
export class SchemaIsNewer extends Schema.TaggedError<SchemaIsNewer>()("SchemaIsNewer", {
  store: Schema.String,
  found: Schema.Number,
  known: Schema.Number
}) {
  override get message(): string {
    return `the ${this.store} schema is at ${this.found}, this version knows ${this.known}: start a newer version`
  }
}

/** An arbitrary number for the lock of migrations: "signalbx" in ASCII. */
const lockId = "8316854112690856568"

/**
 * Applies what is missing. Processes that start together take turns under an advisory lock that lasts as long as the
 * transaction, so that all of them return with the whole schema in place, and a crash leaves neither lock nor half a
 * migration. Returns the names of what it applied.
 */
export const migrate = (
  migrations: ReadonlyArray<PostgresMigration>
): Effect.Effect<ReadonlyArray<string>, SqlError | SchemaIsNewer, SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT pg_advisory_xact_lock(${sql.literal(lockId)})`
        yield* sql`CREATE TABLE IF NOT EXISTS migrations (
          id integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`
        const [last] = yield* sql<{ id: number }>`SELECT coalesce(max(id), 0) AS id FROM migrations`
        const found = last?.id ?? 0
        const known = migrations.at(-1)?.id ?? 0
        if (found > known) return yield* new SchemaIsNewer({ store: "Postgres", found, known })
        const missing = migrations.filter((migration) => migration.id > found)
        for (const migration of missing) {
          for (const statement of migration.statements) yield* sql.unsafe(statement)
          yield* sql`INSERT INTO migrations ${sql.insert({ id: migration.id, name: migration.name })}`
        }
        return missing.map((migration) => migration.name)
      })
    )
  })
