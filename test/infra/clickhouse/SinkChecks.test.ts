import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import * as LedgerSink from "#src/llm/ledger/LedgerSink.ts"
import * as CallSink from "#src/llm/usage/CallSink.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { SqlClient } from "effect/sql/SqlClient"

const live = { excludeTestServices: true } as const

layer(TestStores.layer, live)("the check of a sink", (it) => {
  it.effect("passes where the store is well, writes nothing, and is refused without the table", () =>
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const events = yield* EventSink.make()
      for (const [table, sink] of [
        ["calls", yield* CallSink.make],
        ["events", events],
        ["visits", events]
      ] as const) {
        yield* sink.check
        const [counted] = yield* clickhouse.query<{ n: number }>(`SELECT count() AS n FROM ${table}`)
        assert.strictEqual(Number(counted?.n), 0)
        yield* clickhouse.command(`RENAME TABLE ${table} TO elsewhere`)
        const refused = yield* Effect.flip(sink.check)
        assert.deepInclude(refused, { _tag: "SinkRefused", blames: "unknown" })
        assert.include(refused.problem, "60 UNKNOWN_TABLE")
        yield* clickhouse.command(`RENAME TABLE elsewhere TO ${table}`)
        yield* sink.check
      }
    })
  )

  it.effect("passes where Postgres is well, and is refused without the function", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const sink = yield* LedgerSink.make("an owner")
      yield* sink.check
      yield* sql`ALTER FUNCTION ledger_settle RENAME TO elsewhere`
      assert.deepInclude(yield* Effect.flip(sink.check), { _tag: "SinkRefused", blames: "unknown" })
      yield* sql`ALTER FUNCTION elsewhere RENAME TO ledger_settle`
    })
  )
})
