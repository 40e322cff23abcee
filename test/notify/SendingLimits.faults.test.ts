import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { faultOf, live, makeStage, send, sent, subscribe } from "./Stage.ts"

layer(
  TestServer.own({ limits: { deliveriesPerSend: 3, deliveriesWaiting: 4, deliveriesCountedMillis: 0 } }),
  live
)("the limits of sends", (it) => {
  it.effect("refuse more deliveries than one send may make, and leave nothing of it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const stage = yield* makeStage
      const project = yield* stage.project()
      yield* subscribe([project], { channels: 4 })
      const key = yield* stage.projectKey()
      assert.deepStrictEqual(faultOf(yield* send(key)), [
        400,
        "project: more than 3 deliveries; send to fewer at a time"
      ])
      for (const table of ["messages", "deliveries", "jobs"]) {
        const rows =
          yield* sql`SELECT FROM ${sql(table)} ${table === "jobs" ? sql`WHERE queue = 'deliveries'` : sql``}`
        assert.strictEqual(rows.length, 0, table)
      }
    })
  )

  it.effect("refuse what an owner with too many waiting sends, and nobody else's", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const project = yield* stage.project()
      yield* subscribe([project], { channels: 3 })
      const key = yield* stage.projectKey()
      yield* sent(key)
      yield* sent(key)
      const refused = yield* send(key)
      assert.deepStrictEqual(faultOf(refused), [429, "More than 4 deliveries of this account are waiting"])
      assert.strictEqual(refused.headers.get("retry-after"), "60")
      const other = yield* makeStage
      yield* other.project()
      yield* sent(yield* other.projectKey())
    })
  )
})
