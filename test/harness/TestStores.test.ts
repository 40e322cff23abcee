import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { TestStores } from "./TestStores.ts"

describe("the stores of a test file", () => {
  layer(TestStores.layer)((it) => {
    it.effect("have today's Postgres schema and no rows", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        assert.deepStrictEqual(yield* sql`SELECT * FROM users`, [])
        yield* sql`INSERT INTO users ${sql.insert({ id: "usr_1", email: "a@b.example", name: "A", role: "user" })}`
      })
    )

    it.effect("have a ClickHouse database of their own", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const [row] = yield* clickhouse.query<{ database: string }>("SELECT currentDatabase() AS database")
        assert.match(row?.database ?? "", /^test_/)
      })
    )

    it.effect("come with a configuration that points at them", () =>
      Effect.gen(function* () {
        const stores = yield* TestStores
        assert.strictEqual((yield* AppConfig).dataDir, stores.dataDir)
      })
    )
  })

  it.effect("are not the ones of another file", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      assert.deepStrictEqual(yield* sql`SELECT id FROM users`, [])
    }).pipe(Effect.provide(TestStores.layer))
  )
})
