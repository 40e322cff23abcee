import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import {
  askOf,
  dollars,
  ledgerLayer,
  limitOf,
  makeKey,
  makeUser,
  recordOf,
  refresh,
  topUp
} from "./LedgerProbe.ts"

const stores = LedgerCheck.layer.pipe(
  Layer.provideMerge(ledgerLayer),
  Layer.provideMerge(TestStores.layerWith({ limits: { ledgerWaitMillis: 400, ledgerWaiting: 3 } }))
)

const live = { excludeTestServices: true } as const

/** A user with so much, and a key that may spend so much. */
const someone = Effect.fnUntraced(function* (usd: number, spendLimitUsd: number | null = null) {
  const user = yield* makeUser
  const key = yield* makeKey(user, spendLimitUsd)
  if (usd > 0) yield* topUp(user, dollars(usd))
  yield* refresh
  return { user, key }
})

const isClean = Effect.gen(function* () {
  yield* Effect.flatMap(Ledger, ({ flush }) => flush)
  const { differences } = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
  assert.deepStrictEqual(differences, [])
})

/** So many calls are in line. */
const areWaiting = (calls: number) =>
  Effect.flatMap(Ledger, (ledger) =>
    eventually(
      `${calls} calls wait`,
      Effect.sync(() => ledger.waiting() === calls)
    )
  )

/** The settled amount of a row, and that nothing of it is held any more once leases are idle. */
const settledOf = (limit: string) => Effect.map(limitOf(limit), (row) => row?.settled ?? "0")

layer(stores, live)("credits", (it) => {
  it.effect("a call is charged what it has cost, its key counts it, and what it held comes back", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const { key, user } = yield* someone(1)
      const ask = askOf(user, key, dollars(0.001))
      const admission = yield* ledger.admit(ask)
      assert.deepInclude(admission, { covered: false, outputTokens: 100, clamped: false })
      const settlement = admission.settle({ cost: dollars(0.02), tokens: 30 })
      assert.deepInclude(settlement, { charge: String(dollars(0.02)), loss: "0", covered: false })
      append(recordOf(user, key, settlement))
      yield* isClean
      assert.strictEqual(yield* settledOf(`credits:${user}`), String(dollars(0.02)))
      assert.strictEqual(yield* settledOf(`key:${key}`), String(dollars(0.02)))
      // All that is left can be held by one call: nothing of it stayed behind.
      const rest = yield* ledger.admit(askOf(user, key, dollars(0.0098)))
      assert.deepInclude(rest, { outputTokens: 100, clamped: false })
      rest.release()
    })
  )

  it.effect("what the balance does not cover cuts the output, and less than makes sense is refused", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.055)
      const cut = yield* ledger.admit(askOf(user, key, dollars(0.001)))
      assert.deepInclude(cut, { outputTokens: 55, clamped: true })
      cut.release()
      const refused = yield* Effect.flip(
        ledger.admit(askOf(user, key, dollars(0.001), { outputTokensMin: 56 }))
      )
      assert.deepInclude(refused, { _tag: "CreditsExhausted", busy: false })
    })
  )

  it.effect("a user without credits is refused at once", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0)
      const refused = yield* Effect.flip(ledger.admit(askOf(user, key, 1n)))
      assert.deepInclude(refused, { _tag: "CreditsExhausted", busy: false })
    })
  )

  it.effect("a call that costs nothing holds nothing, and nobody needs credits for it", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0)
      const admission = ledger.admitNow(askOf(user, key, 0n))
      assert.deepInclude(admission, { covered: false, outputTokens: 100, clamped: false })
      assert.strictEqual(yield* Effect.promise(async () => admission?.extend(5_000)), 5_000)
      assert.deepStrictEqual(admission?.settle({ cost: 0n, tokens: 100 }).draws, [])
    })
  )

  it.effect("cost above what was held is taken from what is left, and beyond that the platform's loss", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const { key, user } = yield* someone(0.1)
      const admission = yield* ledger.admit(askOf(user, key, dollars(0.001)))
      const settlement = admission.settle({ cost: dollars(0.25), tokens: 250 })
      assert.deepInclude(settlement, { charge: String(dollars(0.1)), loss: String(dollars(0.15)) })
      append(recordOf(user, key, settlement))
      yield* isClean
      assert.deepInclude(yield* limitOf(`credits:${user}`), { settled: String(dollars(0.1)), leased: "0" })
      const sql = yield* SqlClient
      const [lost] = yield* sql`SELECT debit, credit, amount::text FROM entries
        WHERE user_id = ${user} AND kind = 'loss:beyond_hold'`
      assert.deepStrictEqual(lost, {
        debit: "loss:beyond_hold",
        credit: "revenue",
        amount: String(dollars(0.15))
      })
    })
  )

  it.effect("a hold ends once, by settle or release", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.1)
      const ask = askOf(user, key, dollars(0.001))
      const released = yield* ledger.admit(ask)
      released.release()
      released.release()
      assert.deepStrictEqual(released.settle({ cost: dollars(0.05), tokens: 50 }).draws, [])
      const settled = yield* ledger.admit(ask)
      assert.strictEqual(settled.settle({ cost: dollars(0.05), tokens: 50 }).charge, String(dollars(0.05)))
      assert.deepStrictEqual(settled.settle({ cost: dollars(0.05), tokens: 50 }).draws, [])
      settled.release()
      assert.deepInclude(yield* ledger.admit(ask), { outputTokens: 50 })
    })
  )

  it.effect("a hold is extended while the balance lasts, and covers as much as before when it does not", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.25)
      const admission = yield* ledger.admit(askOf(user, key, dollars(0.001)))
      assert.strictEqual(yield* Effect.promise(() => admission.extend(200)), 200)
      assert.strictEqual(yield* Effect.promise(() => admission.extend(300)), 250)
      assert.strictEqual(yield* Effect.promise(() => admission.extend(400)), 250)
      const settlement = admission.settle({ cost: dollars(0.249), tokens: 259 })
      assert.deepInclude(settlement, { charge: String(dollars(0.249)), loss: "0" })
      assert.lengthOf(settlement.draws, 2)
    })
  )
})

layer(stores, live)("holds of other calls", (it) => {
  it.effect("are waited for: a call that only they block begins when they end", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.1)
      const ask = askOf(user, key, dollars(0.001))
      const first = yield* ledger.admit(ask)
      const second = yield* Effect.forkChild(ledger.admit(ask))
      yield* areWaiting(1)
      first.settle({ cost: dollars(0.02), tokens: 20 })
      assert.deepInclude(yield* Fiber.join(second), { outputTokens: 80, clamped: true })
    })
  )

  it.effect("that outlast the wait are refused as busy: it may be tried again", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.1)
      const ask = askOf(user, key, dollars(0.001))
      yield* ledger.admit(ask)
      assert.deepInclude(yield* Effect.flip(ledger.admit(ask)), { _tag: "CreditsExhausted", busy: true })
    })
  )

  it.effect("that outlast the wait leave a call what they do not hold", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.13)
      const ask = askOf(user, key, dollars(0.001))
      yield* ledger.admit(ask)
      assert.deepInclude(yield* ledger.admit(ask), { outputTokens: 30, clamped: true })
    })
  )

  it.effect("are taken over in the order in which calls came", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.1)
      const first = yield* ledger.admit(askOf(user, key, dollars(0.001)))
      const served: Array<string> = []
      const waiting = (name: string, outputTokens: number) =>
        Effect.forkChild(
          Effect.map(ledger.admit(askOf(user, key, dollars(0.001), { outputTokens })), (admission) => {
            served.push(name)
            admission.release()
          })
        )
      const large = yield* waiting("large", 100)
      const small = yield* waiting("small", 1)
      yield* areWaiting(2)
      // One token came free: enough for the small one, which came later.
      first.settle({ cost: dollars(0.001), tokens: 1 })
      yield* Fiber.join(large)
      yield* Fiber.join(small)
      assert.deepStrictEqual(served, ["large", "small"])
    })
  )

  it.effect("are waited for by so many calls of a user; further ones are refused at once", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.1)
      const ask = askOf(user, key, dollars(0.001))
      const first = yield* ledger.admit(ask)
      const waiting = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(Effect.exit(ledger.admit(ask))))
      yield* areWaiting(3)
      assert.deepInclude(yield* Effect.flip(ledger.admit(ask)), { _tag: "CreditsExhausted", busy: true })
      assert.isUndefined(waiting[0]?.pollUnsafe(), "those in line wait still")
      first.release()
      yield* Fiber.joinAll(waiting)
    })
  )

  it.effect("do not keep a call whose caller has gone", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(0.1)
      const ask = askOf(user, key, dollars(0.001))
      const first = yield* ledger.admit(ask)
      const gone = yield* Effect.forkChild(ledger.admit(ask))
      yield* areWaiting(1)
      yield* Fiber.interrupt(gone)
      first.release()
      assert.deepInclude(yield* ledger.admit(ask), { outputTokens: 100 })
    })
  )
})

const setSpendLimit = (key: string, usd: number | null) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`UPDATE keys SET spend_limit_usd = ${usd} WHERE id = ${key}`
    yield* refresh
  })

layer(stores, live)("a key's spend limit", (it) => {
  it.effect("cuts and refuses calls, whatever the balance", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const { key, user } = yield* someone(1, 0.15)
      const ask = askOf(user, key, dollars(0.001))
      const first = yield* ledger.admit(ask)
      append(recordOf(user, key, first.settle({ cost: dollars(0.1), tokens: 100 })))
      const second = yield* ledger.admit(ask)
      assert.deepInclude(second, { outputTokens: 50, clamped: true })
      append(recordOf(user, key, second.settle({ cost: dollars(0.05), tokens: 50 })))
      yield* isClean
      assert.deepInclude(yield* Effect.flip(ledger.admit(ask)), { _tag: "KeyLimitReached", busy: false })
      assert.strictEqual((yield* limitOf(`key:${key}`))?.settled, String(dollars(0.15)))
    })
  )

  it.effect("may be raised, set below what is spent, and lifted", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const { key, user } = yield* someone(1, 0.1)
      const ask = askOf(user, key, dollars(0.001))
      append(recordOf(user, key, (yield* ledger.admit(ask)).settle({ cost: dollars(0.1), tokens: 100 })))
      yield* isClean
      assert.strictEqual((yield* Effect.flip(ledger.admit(ask)))._tag, "KeyLimitReached")
      yield* setSpendLimit(key, 0.13)
      const raised = yield* ledger.admit(ask)
      assert.deepInclude(raised, { outputTokens: 30, clamped: true })
      raised.release()
      yield* setSpendLimit(key, 0.05)
      yield* eventually(
        "the leases of before are recalled",
        Effect.map(limitOf(`key:${key}`), (row) => row?.leased === "0")
      )
      assert.deepInclude(yield* Effect.flip(ledger.admit(ask)), { _tag: "KeyLimitReached", busy: false })
      yield* setSpendLimit(key, null)
      const free = yield* ledger.admit(ask)
      assert.deepInclude(free, { outputTokens: 100, clamped: false })
      append(recordOf(user, key, free.settle({ cost: dollars(0.1), tokens: 100 })))
      yield* isClean
      assert.deepInclude(yield* limitOf(`key:${key}`), { cap: null, settled: String(dollars(0.2)) })
    })
  )

  it.effect("blocks the key's own calls, and not those of other keys behind them", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* someone(1, 0.1)
      const other = yield* makeKey(user)
      yield* refresh
      const held = yield* ledger.admit(askOf(user, key, dollars(0.001)))
      const blocked = yield* Effect.forkChild(Effect.flip(ledger.admit(askOf(user, key, dollars(0.001)))))
      yield* areWaiting(1)
      const admission = yield* ledger.admit(askOf(user, other, dollars(0.001)))
      assert.deepInclude(admission, { outputTokens: 100, clamped: false })
      assert.isUndefined(blocked.pollUnsafe(), "the blocked call still waits")
      assert.deepInclude(yield* Fiber.join(blocked), { _tag: "KeyLimitReached", busy: true })
      held.release()
      admission.release()
    })
  )
})
