import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { tmpdir } from "node:os"
import { CallLog } from "#src/llm/CallLog.ts"
import { Ledger } from "#src/llm/Ledger.ts"
import { LedgerCheck } from "#src/llm/LedgerCheck.ts"
import { KeyDirectory } from "#src/accounts/KeyDirectory.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { TestStores } from "#test/stores/TestStores.ts"
import { call, type Side } from "./Callers.ts"
import { askOf, dollars, ledgerLayer, limitOf, makeKey, makeUser, topUp, withOwnLog } from "./LedgerProbe.ts"

const stores = LedgerCheck.layer.pipe(
  Layer.provideMerge(KeyDirectory.layer),
  Layer.provideMerge(TestStores.layer)
)

/** Another ledger beside those that there are: an owner of its own, as another process would be. */
const side = Effect.gen(function* () {
  const dataDir = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "signalbox-ledger-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const built = yield* Layer.build(Layer.fresh(ledgerLayer).pipe(Layer.provide(withOwnLog(dataDir))))
  const made: Side = { ledger: Context.get(built, Ledger), calls: Context.get(built, CallLog) }
  return made
})

layer(stores, { excludeTestServices: true, timeout: 120_000 })(
  "2,000 calls at once, for 500 of which there is money",
  (it) => {
    it.effect("of two ledgers on one Postgres spend at least 99 % of the balance, and never more", () =>
      Effect.gen(function* () {
        const sides = [yield* side, yield* side]
        const user = yield* makeUser
        const key = yield* makeKey(user)
        const balance = dollars(50)
        yield* topUp(user, balance)
        const random = new SeededRandom(1)
        const ask = askOf(user, key, dollars(0.001))
        const results = yield* Effect.forEach(
          Array.from({ length: 2_000 }, (_, index) => sides[index % 2]).flatMap((each) => each ?? []),
          (each) => {
            const lasts = random.below(50)
            return Effect.result(call(each, ask, lasts, (allowed) => allowed))
          },
          { concurrency: "unbounded" }
        )
        const served = results.filter(Result.isSuccess).map(({ success }) => success.charged)
        const charged = served.reduce((sum, amount) => sum + amount, 0n)
        yield* Effect.forEach(sides, ({ ledger }) => ledger.flush)
        const row = yield* limitOf(`credits:${user}`)
        assert.strictEqual(row?.settled, String(charged))
        assert.isAtMost(Number(charged), Number(balance))
        assert.isAtLeast(Number(charged), Number(balance) * 0.99)
        const verdict = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
        assert.deepStrictEqual(verdict.differences, [])
      }).pipe(Effect.scoped)
    )
  }
)
