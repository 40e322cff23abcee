import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
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

const postgres = postgresWire()

const stores = LedgerCheck.layer.pipe(
  Layer.provideMerge(ledgerLayer),
  Layer.provideMerge(
    TestStores.layerWith(
      {
        limits: {
          ledgerGrantMillis: 500,
          ledgerIdleMillis: 500,
          retryMaxMillis: 500,
          settlementWriteMillis: 1_000
        }
      },
      postgres.wire
    )
  )
)

const someone = Effect.fnUntraced(function* (usd: number) {
  const user = yield* makeUser
  const key = yield* makeKey(user)
  yield* topUp(user, dollars(usd))
  yield* refresh
  return { user, key, ask: askOf(user, key, dollars(0.001)) }
})

const comesBack = (user: string, settled: bigint) =>
  eventually(
    "everything is booked, and nothing is leased",
    Effect.gen(function* () {
      const row = yield* limitOf(`credits:${user}`)
      const { differenceCount } = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
      return row?.settled === String(settled) && row.leased === "0" && differenceCount === 0
    })
  )

layer(stores, { excludeTestServices: true })("while Postgres is away", (it) => {
  for (const way of ["refuse", "stall"] as const) {
    it.effect(`calls go on from what is leased, then are 503, and are booked when it is back (${way})`, () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const { append } = yield* CallLog
        const { ask, key, user } = yield* someone(100)
        const first = yield* ledger.admit(ask)
        append(recordOf(user, key, first.settle({ cost: dollars(0.1), tokens: 100 })))
        yield* Effect.flatMap(Ledger, ({ flush }) => flush)
        yield* postgres.cut(way)
        let charged = dollars(0.1)
        for (;;) {
          const admission = ledger.admitNow(ask)
          if (admission === undefined) break
          append(recordOf(user, key, admission.settle({ cost: dollars(0.1), tokens: 100 })))
          charged += dollars(0.1)
        }
        assert.isAbove(Number(charged), Number(dollars(0.1)), "nothing was leased")
        const refused = yield* Effect.flip(ledger.admit(ask))
        assert.strictEqual(refused._tag, "LedgerAway")
        postgres.mend()
        const again = yield* ledger.admit(ask).pipe(Effect.retry(Schedule.spaced(50)))
        again.release()
        yield* comesBack(user, charged)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("what was on connections that are lost, and say so to nobody, is booked by others", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { append } = yield* CallLog
      const { ask, key, user } = yield* someone(100)
      const call = (admission: Effect.Success<ReturnType<typeof ledger.admit>>) =>
        append(recordOf(user, key, admission.settle({ cost: dollars(0.1), tokens: 100 })))
      call(yield* ledger.admit(ask))
      yield* Effect.flatMap(Ledger, ({ flush }) => flush)
      // One is amid its transaction, the others wait.
      for (let count = 0; count < 20; count++) {
        const admission = yield* Effect.retry(ledger.admit(ask), Schedule.spaced(50))
        call(admission)
        if (count === 10) yield* postgres.lose
      }
      yield* comesBack(user, dollars(0.1) * 21n)
    }).pipe(Effect.scoped)
  )

  it.effect("a line of calls is told at once, not one by one", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { ask, user } = yield* someone(0.1)
      yield* postgres.cut("stall")
      const refused = yield* Effect.forEach(
        Array.from({ length: 50 }),
        () => Effect.flip(ledger.admit(ask)),
        { concurrency: "unbounded" }
      ).pipe(Effect.timeout("20 seconds"))
      assert.deepStrictEqual([...new Set(refused.map(({ _tag }) => _tag))], ["LedgerAway"])
      postgres.mend()
      yield* comesBack(user, 0n)
    }).pipe(Effect.scoped)
  )

  it.effect("what it granted without being able to say so comes back", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const people = yield* Effect.forEach(Array.from({ length: 20 }), () => someone(0.1))
      // The wire breaks while grants are on it: some of them are carried out, without an answer.
      yield* Effect.all(
        [
          Effect.forEach(
            people,
            ({ ask }) => Effect.exit(Effect.map(ledger.admit(ask), (one) => one.release())),
            {
              concurrency: "unbounded"
            }
          ),
          Effect.andThen(Effect.yieldNow, postgres.cut("refuse"))
        ],
        { concurrency: "unbounded" }
      )
      postgres.mend()
      yield* Effect.forEach(people, ({ user }) => comesBack(user, 0n))
    }).pipe(Effect.scoped)
  )
})
