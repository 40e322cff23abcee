import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Schedule, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { nothingDrawn } from "#streams/llm/CallRecord.ts"
import { encode } from "#streams/llm/CallRow.ts"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { askOf, dollars, limitOf, makeKey, makeUser, recordOf, topUp } from "./LedgerProbe.ts"
import { sideIn, temporaryDirectory } from "./Sides.ts"

const stores = LedgerCheck.layer.pipe(
  Layer.provideMerge(TestStores.layerWith({ limits: { ledgerRetryMillis: 100 } }))
)

layer(stores, { excludeTestServices: true })("a ledger that starts", (it) => {
  it.effect("while Postgres books nothing is there, leases nothing, and goes on when the cause is gone", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const user = yield* makeUser
      const key = yield* makeKey(user)
      yield* topUp(user, dollars(1))
      const dataDir = yield* temporaryDirectory
      // The remains of a crash: an unbooked call.
      const scope = yield* Scope.make()
      const log = yield* DurableLog.open({
        directory: `${dataDir}/llm/log`,
        consumers: ["ledger", "clickhouse"],
        writeThrough: true
      }).pipe(Scope.provide(scope))
      const draws = [`credits:${user}`, `key:${key}`].map((limit) => ({
        limit,
        windowStart: 0,
        amount: "700",
        leased: true
      }))
      yield* log.appendEffect(encode(recordOf(user, key, { ...nothingDrawn, charge: "700", draws })))
      yield* Scope.close(scope, Exit.void)
      yield* sql`ALTER FUNCTION ledger_settle RENAME TO ledger_settle_elsewhere`
      const { ledger, refresh } = yield* sideIn(dataDir)
      yield* refresh
      const ask = askOf(user, key, dollars(0.001))
      assert.strictEqual((yield* Effect.flip(ledger.admit(ask)))._tag, "LedgerAway")
      assert.include((yield* Effect.flip(ledger.flush)).problem, "42883")
      yield* sql`ALTER FUNCTION ledger_settle_elsewhere RENAME TO ledger_settle`
      yield* eventually(
        "calls of the last run are booked",
        Effect.map(limitOf(`credits:${user}`), (row) => row?.settled === "700")
      )
      const admission = yield* Effect.retry(ledger.admit(ask), { schedule: Schedule.spaced(100), times: 100 })
      admission.release()
      const { differences } = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
      assert.deepStrictEqual(differences, [])
    }).pipe(Effect.scoped)
  )
})
