import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { call, type Served } from "./Callers.ts"
import {
  askOf,
  dollars,
  limitOf,
  makeKey,
  makeUser,
  setLedgerClock,
  subscribe,
  topUp
} from "./LedgerProbe.ts"
import { type Side, side } from "./Sides.ts"

/** Calls wait for as long as there are holds: how fast the machine is decides nothing. */
const stores = LedgerCheck.layer.pipe(
  Layer.provideMerge(
    TestStores.layerWith({ limits: { ledgerWaitMillis: 30_000, ledgerGrantMillis: 30_000 } })
  )
)

const live = { excludeTestServices: true } as const

const seed = Number(process.env["SIMULATION_SEED"] ?? 1)

const perToken = dollars(0.001)

/** 2,000 calls at once, half on each side, that last up to 50 ms and use up what they may. The refused try again … */
const callAll = (sides: ReadonlyArray<Side>, ask: AdmissionAsk, untilMillis = -Infinity) => {
  const random = new SeededRandom(seed)
  const callers = Array.from({ length: 2_000 }, (_, index) => sides[index % sides.length]).flatMap(
    (each) => each ?? []
  )
  return Effect.gen(function* () {
    yield* Effect.forEach(sides, (each) => each.refresh)
    const results = yield* Effect.forEach(
      callers,
      (each) => {
        const lastsMillis = random.below(50)
        return call(each, ask, lastsMillis, (allowed) => allowed).pipe(
          Effect.retry({ while: () => performance.now() < untilMillis, schedule: Schedule.spaced(50) }),
          Effect.result
        )
      },
      { concurrency: "unbounded" }
    )
    yield* Effect.forEach(sides, ({ ledger }) => ledger.flush)
    const { differences } = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
    assert.deepStrictEqual(differences, [], `SIMULATION_SEED=${seed}`)
    return results.filter(Result.isSuccess).map(({ success }) => success)
  })
}

const isSpent = (spent: bigint, cap: bigint): void => {
  assert.isTrue(spent <= cap, `SIMULATION_SEED=${seed}: ${spent} of ${cap}`)
  assert.isTrue(spent * 100n >= cap * 99n, `SIMULATION_SEED=${seed}: ${spent} of ${cap}`)
}

const sum = (served: ReadonlyArray<Served>, of: (one: Served) => bigint): bigint =>
  served.reduce((total, one) => total + of(one), 0n)

layer(stores, live)("2,000 calls at once on two ledgers, for 500 of which there is enough", (it) => {
  it.effect("spend at least 99 % of the balance, and never more", () =>
    Effect.gen(function* () {
      const sides = [yield* side, yield* side]
      const user = yield* makeUser
      const key = yield* makeKey(user)
      yield* topUp(user, dollars(50))
      const served = yield* callAll(sides, askOf(user, key, perToken))
      const charged = sum(served, (one) => one.charged)
      isSpent(charged, dollars(50))
      assert.strictEqual((yield* limitOf(`credits:${user}`))?.settled, String(charged))
    }).pipe(Effect.scoped)
  )

  it.effect("spend at least 99 % of what their key may, and never more", () =>
    Effect.gen(function* () {
      const sides = [yield* side, yield* side]
      const user = yield* makeUser
      const key = yield* makeKey(user, 50)
      yield* topUp(user, dollars(1_000))
      const served = yield* callAll(sides, askOf(user, key, perToken))
      const charged = sum(served, (one) => one.charged)
      isSpent(charged, dollars(50))
      assert.strictEqual((yield* limitOf(`key:${key}`))?.settled, String(charged))
    }).pipe(Effect.scoped)
  )

  for (const window of ["hour", "day", "week"]) {
    it.effect(`use at least 99 % of the allowance of the ${window}, and never more`, () =>
      Effect.gen(function* () {
        yield* setLedgerClock(new Date("2026-11-24T12:30:00Z"))
        const sides = [yield* side, yield* side]
        const user = yield* makeUser
        const key = yield* makeKey(user)
        const subscription = yield* subscribe(user, { [window]: 55_000 })
        const served = yield* callAll(sides, askOf(user, key, perToken))
        const drawn = sum(served, (one) => BigInt(one.drawn))
        isSpent(drawn, 55_000n)
        assert.strictEqual((yield* limitOf(`allowance:${subscription}:${window}`))?.settled, String(drawn))
      }).pipe(Effect.scoped)
    )

    it.effect(`never use more in either ${window} when it begins anew meanwhile`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const sides = [yield* side, yield* side]
        const user = yield* makeUser
        const key = yield* makeKey(user)
        const subscription = yield* subscribe(user, { [window]: 55_000 })
        // In 800 ms it is Monday, and hour, day and week begin together. Until a bit later everybody tries again.
        yield* setLedgerClock(new Date("2026-11-29T23:59:59.200Z"))
        const served = yield* callAll(sides, askOf(user, key, perToken), performance.now() + 1_000)
        const rows = yield* sql<{ settled: string }>`SELECT settled::text FROM limits
          WHERE id = ${`allowance:${subscription}:${window}`} ORDER BY window_start`
        const [before = 0n, after = 0n, ...others] = rows.map(({ settled }) => BigInt(settled))
        assert.lengthOf(others, 0)
        assert.strictEqual(
          before + after,
          sum(served, (one) => BigInt(one.drawn))
        )
        assert.isTrue(before > 0n && before <= 55_000n, `SIMULATION_SEED=${seed}: ${before}`)
        isSpent(after, 55_000n)
      }).pipe(Effect.scoped)
    )
  }
})
