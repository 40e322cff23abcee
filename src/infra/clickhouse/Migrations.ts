import { Effect } from "effect"
import { SchemaIsNewer } from "../postgres/Migrations.ts"
import { ClickHouse } from "./ClickHouse.ts"
import type { ClickHouseFailed, ClickHouseUnavailable } from "./ClickHouseFailed.ts"

/**
 * One step of the schema. ClickHouse has no transactions: every statement must be one that can run again
 * (`IF NOT EXISTS`), because a crash, or a second process, may run the step twice.
 */
export interface ClickHouseMigration {
  readonly id: number
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

/**
 * Parts that were merged stay for as long as the kernel may take to write the merged one (ClickHouse's own default, in seconds).
 * chdb deletes them at once: a merge that a power failure or a full disk had damaged could not be undone.
 */
const oldPartsLifetime = 480

/** The statement for a table of the MergeTree family. */
export const keepingOldParts = (table: string): string =>
  `ALTER TABLE ${table} MODIFY SETTING old_parts_lifetime = ${oldPartsLifetime}`

/** Applies what is missing, in order, and remembers it. Returns the names of what it applied. */
export const migrate = (
  migrations: ReadonlyArray<ClickHouseMigration>
): Effect.Effect<
  ReadonlyArray<string>,
  ClickHouseUnavailable | ClickHouseFailed | SchemaIsNewer,
  ClickHouse
> =>
  Effect.gen(function* () {
    const clickhouse = yield* ClickHouse
    yield* clickhouse.command(
      `CREATE TABLE IF NOT EXISTS migrations (id UInt32, name String, applied_at DateTime DEFAULT now())
       ENGINE = ReplacingMergeTree ORDER BY id`
    )
    const [last] = yield* clickhouse.query<{ id: number }>("SELECT max(id) AS id FROM migrations")
    const found = last?.id ?? 0
    const known = migrations.at(-1)?.id ?? 0
    if (found > known) return yield* new SchemaIsNewer({ store: "ClickHouse", found, known })
    const missing = migrations.filter((migration) => migration.id > found)
    for (const { id, name, statements } of missing) {
      for (const statement of statements) yield* clickhouse.command(statement)
      const row = new TextEncoder().encode(JSON.stringify({ id, name }))
      yield* clickhouse.insert("migrations", ["id", "name"], row, { format: "JSONEachRow" })
    }
    return missing.map((migration) => migration.name)
  })
