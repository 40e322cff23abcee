import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import {
  askOf,
  dollars,
  ledgerLayer,
  limitOf,
  makeKey,
  makeUser,
  type PlanTerms,
  recordOf,
  refresh,
  setLedgerClock,
  subscribe,
  topUp
} from "./LedgerProbe.ts"

const stores = LedgerCheck.layer.pipe(
  Layer.provideMerge(ledgerLayer),
  Layer.provideMerge(TestStores.layerWith({ limits: { ledgerWaitMillis: 400 } }))
)

const live = { excludeTestServices: true } as const

const subscriber = Effect.fnUntraced(function* (terms: PlanTerms, usd = 0) {
  const user = yield* makeUser
  const key = yield* makeKey(user)
  const subscription = yield* subscribe(user, terms)
  if (usd > 0) yield* topUp(user, dollars(usd))
  yield* refresh
  return { user, key, subscription, ask: askOf(user, key, dollars(0.001)) }
})

const isClean = Effect.gen(function* () {
  yield* Effect.flatMap(Ledger, ({ flush }) => flush)
  const { differences } = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
  assert.deepStrictEqual(differences, [])
})

const usedOf = (subscription: string) =>
  Effect.forEach(["hour", "day", "week"], (window) =>
    Effect.map(limitOf(`allowance:${subscription}:${window}`), (row) => Number(row?.settled ?? 0))
  )

layer(stores, live)("a plan's allowances", (it) => {
  it.effect("pay for a call by its tokens in all three windows, and the credits stay as they are", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const { ask, key, subscription, user } = yield* subscriber({}, 1)
      const admission = yield* ledger.admit(ask)
      assert.deepInclude(admission, { covered: true, outputTokens: 100, clamped: false })
      const settlement = admission.settle({ cost: dollars(0.03), tokens: 40 })
      assert.deepInclude(settlement, { charge: "0", loss: "0", covered: true })
      append(recordOf(user, key, settlement))
      yield* isClean
      assert.deepStrictEqual(yield* usedOf(subscription), [40, 40, 40])
      assert.deepInclude(yield* limitOf(`credits:${user}`), { settled: "0" })
      // A spend limit is of money.
      assert.strictEqual((yield* limitOf(`key:${key}`))?.settled, "0")
    })
  )

  for (const window of ["hour", "day", "week"]) {
    it.effect(`cut the output where the ${window} has not enough, and then the credits pay`, () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const { append } = yield* CallLog
        const { ask, key, user } = yield* subscriber({ [window]: 150 }, 1)
        append(recordOf(user, key, (yield* ledger.admit(ask)).settle({ cost: 1n, tokens: 110 })))
        const cut = yield* ledger.admit(ask)
        assert.deepInclude(cut, { covered: true, outputTokens: 30, clamped: true })
        append(recordOf(user, key, cut.settle({ cost: 1n, tokens: 40 })))
        const paid = yield* ledger.admit(ask)
        assert.deepInclude(paid, { covered: false, outputTokens: 100, clamped: false })
        append(recordOf(user, key, paid.settle({ cost: dollars(0.01), tokens: 110 })))
        yield* isClean
        assert.strictEqual((yield* limitOf(`credits:${user}`))?.settled, String(dollars(0.01)))
      })
    )
  }

  it.effect("that are used up leave a user without credits with 402", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const { ask, key, user } = yield* subscriber({ hour: 110 })
      append(recordOf(user, key, (yield* ledger.admit(ask)).settle({ cost: 1n, tokens: 110 })))
      yield* isClean
      assert.deepInclude(yield* Effect.flip(ledger.admit(ask)), { _tag: "CreditsExhausted", busy: false })
    })
  )

  it.effect("that other calls hold are not waited for where credits pay", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { ask } = yield* subscriber({ hour: 110 }, 1)
      assert.deepInclude(yield* ledger.admit(ask), { covered: true })
      assert.deepInclude(yield* ledger.admit(ask), { covered: false, clamped: false })
    })
  )

  it.effect("that other calls hold are busy where nothing else pays", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { ask } = yield* subscriber({ hour: 110 })
      const first = yield* ledger.admit(ask)
      assert.deepInclude(yield* Effect.flip(ledger.admit(ask)), { _tag: "CreditsExhausted", busy: true })
      first.release()
    })
  )

  it.effect("lose the platform the cost of tokens that they do not cover any more", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const { ask, key, subscription, user } = yield* subscriber({ day: 110 })
      const settlement = (yield* ledger.admit(ask)).settle({ cost: 200n, tokens: 220 })
      assert.deepInclude(settlement, { charge: "0", loss: "100", covered: true })
      append(recordOf(user, key, settlement))
      yield* isClean
      assert.deepStrictEqual(yield* usedOf(subscription), [110, 110, 110])
    })
  )

  it.effect("never pay for a call that costs nothing", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { key, user } = yield* subscriber({})
      assert.deepInclude(yield* ledger.admit(askOf(user, key, 0n)), { covered: false, outputTokens: 100 })
    })
  )
})

const covered = Effect.fnUntraced(function* (terms: PlanTerms, changes: Parameters<typeof askOf>[3] = {}) {
  const ledger = yield* Ledger
  const { key, user } = yield* subscriber(terms, 1)
  const admission = yield* ledger.admit(askOf(user, key, dollars(0.001), changes))
  admission.release()
  return admission.covered
})

layer(stores, live)("what a plan covers", (it) => {
  it.effect("direct calls only where covers_direct_api says so, the agent's calls in any case", () =>
    Effect.gen(function* () {
      assert.isTrue(yield* covered({ direct: true }, { source: "api" }))
      assert.isFalse(yield* covered({ direct: false }, { source: "api" }))
      assert.isTrue(yield* covered({ direct: false }, { source: "agent" }))
    })
  )

  it.effect("calls of which every model that may answer is the plan's", () =>
    Effect.gen(function* () {
      assert.isTrue(yield* covered({ models: ["m/one", "m/two"] }, { models: ["m/two", "m/one"] }))
      assert.isFalse(yield* covered({ models: ["m/one"] }, { models: ["m/one", "m/two"] }))
      assert.isFalse(yield* covered({ models: [] }))
    })
  )

  it.effect("nothing after the end of its period", () =>
    Effect.gen(function* () {
      assert.isFalse(yield* covered({ until: new Date(Date.now() - 1_000) }))
    })
  )

  it.effect("nothing once it is canceled, whatever this process has leased of it", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const sql = yield* SqlClient
      const { ask, subscription } = yield* subscriber({}, 1)
      assert.isTrue((yield* ledger.admit(ask)).covered)
      yield* sql`UPDATE subscriptions SET status = 'canceled' WHERE id = ${subscription}`
      yield* refresh
      assert.isFalse((yield* ledger.admit(ask)).covered)
    })
  )
})

layer(stores, live)("allowance windows", (it) => {
  it.effect("are of the calendar in UTC on Postgres's clock: hours, days, and weeks from Monday", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      // A Sunday.
      yield* setLedgerClock(new Date("2026-11-22T23:59:00Z"))
      const { ask } = yield* subscriber({})
      const draws = (yield* ledger.admit(ask)).settle({ cost: 1n, tokens: 10 }).draws
      const starts = draws.map(({ limit, windowStart }) => [
        limit.split(":")[2],
        new Date(windowStart).toISOString()
      ])
      assert.deepStrictEqual(starts, [
        ["day", "2026-11-22T00:00:00.000Z"],
        ["hour", "2026-11-22T23:00:00.000Z"],
        ["week", "2026-11-16T00:00:00.000Z"]
      ])
    })
  )

  it.effect("begin anew at their instant, and a call is drawn from the window in which it began", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const sql = yield* SqlClient
      yield* setLedgerClock(new Date("2026-11-22T23:59:00Z"))
      const { ask, key, subscription, user } = yield* subscriber({ hour: 110, day: 110, week: 110 })
      const before = yield* ledger.admit(ask)
      assert.deepInclude(yield* Effect.flip(ledger.admit(ask)), { _tag: "CreditsExhausted" })
      yield* setLedgerClock(new Date("2026-11-22T23:59:59.900Z"))
      const after = yield* ledger.admit(ask).pipe(Effect.retry(Schedule.spaced(20)))
      assert.deepInclude(after, { covered: true, outputTokens: 100, clamped: false })
      append(recordOf(user, key, after.settle({ cost: 1n, tokens: 50 })))
      append(recordOf(user, key, before.settle({ cost: 1n, tokens: 60 })))
      yield* isClean
      const rows = yield* sql`SELECT window_start, settled::int AS settled FROM limits
        WHERE id = ${`allowance:${subscription}:week`} ORDER BY window_start`
      assert.deepStrictEqual(rows, [
        { window_start: new Date("2026-11-16T00:00:00Z"), settled: 60 },
        { window_start: new Date("2026-11-23T00:00:00Z"), settled: 50 }
      ])
    })
  )

  it.effect("of a hold that is extended after a reset are both: each keeps what was held in it", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const sql = yield* SqlClient
      yield* setLedgerClock(new Date("2026-11-24T00:59:00Z"))
      const { ask, key, subscription, user } = yield* subscriber({ hour: 110 })
      const admission = yield* ledger.admit(ask)
      yield* setLedgerClock(new Date("2026-11-24T00:59:59.900Z"))
      const grown = Effect.promise(() => admission.extend(160))
      assert.strictEqual(
        yield* Effect.repeat(grown, { until: (tokens) => tokens > 100, schedule: Schedule.spaced(20) }),
        160
      )
      append(recordOf(user, key, admission.settle({ cost: 1n, tokens: 150 })))
      yield* isClean
      const rows = yield* sql`SELECT settled::int AS settled FROM limits
        WHERE id = ${`allowance:${subscription}:hour`} ORDER BY window_start`
      assert.deepStrictEqual(rows, [{ settled: 110 }, { settled: 40 }])
    })
  )
})
