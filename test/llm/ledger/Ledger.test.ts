import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CallLog } from "#src/llm/CallLog.ts"
import { Ledger } from "#src/llm/Ledger.ts"
import { TestStores } from "#test/stores/TestStores.ts"
import { askOf, dollars, ledgerLayer, limitOf, makeKey, makeUser, recordOf, topUp } from "./LedgerProbe.ts"

layer(ledgerLayer.pipe(Layer.provideMerge(TestStores.layer)), { excludeTestServices: true, timeout: 60_000 })(
  "the ledger",
  (it) => {
    it.effect("charges a call what it has cost, and gives back what it held", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const { append } = yield* CallLog
        const user = yield* makeUser
        const key = yield* makeKey(user)
        yield* topUp(user, dollars(1))
        const ask = askOf(user, key, dollars(0.001))
        assert.isUndefined(ledger.admitNow(ask))
        const admission = yield* ledger.admit(ask)
        assert.deepInclude(admission, { covered: false, outputTokens: 100, clamped: false })
        const settlement = admission.settle({ cost: dollars(0.02), tokens: 30 })
        append(recordOf(user, key, settlement))
        yield* ledger.flush
        assert.deepInclude(yield* limitOf(`credits:${user}`), { settled: String(dollars(0.02)) })
        assert.deepInclude(yield* limitOf(`key:${key}`), { settled: String(dollars(0.02)), leased: "0" })
      })
    )
  }
)
