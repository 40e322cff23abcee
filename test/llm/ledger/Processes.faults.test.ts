import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { dollars, limitOf, makeKey, makeUser, topUp } from "./LedgerProbe.ts"
import { startLedgerProcess } from "./LedgerProcesses.ts"
import { sideIn, temporaryDirectory } from "./Sides.ts"

const stores = LedgerCheck.layer.pipe(Layer.provideMerge(TestStores.layer))

const live = { excludeTestServices: true } as const

const seed = Number(process.env["SIMULATION_SEED"] ?? 1)

/** `LEDGER_KILLS=50` for a long run by hand. */
const kills = Number(process.env["LEDGER_KILLS"] ?? 5)

const totalOf = (charges: Iterable<bigint>): bigint => Array.from(charges).reduce((sum, one) => sum + one, 0n)

const isVerified = Effect.gen(function* () {
  const { differences } = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
  assert.deepStrictEqual(differences, [], `SIMULATION_SEED=${seed}`)
})

const limitsOf = (userId: string, keyId: string, what: "balance" | "cap") =>
  what === "balance" ? `credits:${userId}` : `key:${keyId}`

layer(stores, live)("two processes on one Postgres", (it) => {
  for (const what of ["balance", "cap"] as const) {
    it.effect(
      `that make 2,000 calls at once for a ${what} of 500 spend at least 99 % of it, and never more`,
      () =>
        Effect.gen(function* () {
          const { databaseUrl } = yield* TestStores
          const userId = yield* makeUser
          const keyId = yield* makeKey(userId, what === "cap" ? 50 : null)
          yield* topUp(userId, dollars(what === "cap" ? 1_000 : 50))
          const started = yield* Effect.forEach([1, 2], (n) =>
            Effect.flatMap(temporaryDirectory, (dataDir) =>
              startLedgerProcess({
                databaseUrl,
                dataDir,
                userId,
                keyId,
                perToken: String(dollars(0.001)),
                calls: 1_000,
                atOnce: 1_000,
                lastsMillis: 50,
                seed: seed + n
              })
            )
          )
          yield* Effect.promise(() => Promise.all(started.map(({ ready }) => ready)))
          for (const { go } of started) go()
          yield* Effect.promise(() => Promise.all(started.map(({ done }) => done)))
          const charged = totalOf(started.flatMap(({ charges }) => Array.from(charges.values())))
          assert.isTrue(charged <= dollars(50), `SIMULATION_SEED=${seed}: ${charged}`)
          assert.isTrue(charged >= dollars(49.5), `SIMULATION_SEED=${seed}: ${charged}`)
          for (const { charges } of started) assert.isAbove(charges.size, 0)
          assert.strictEqual((yield* limitOf(limitsOf(userId, keyId, what)))?.settled, String(charged))
          yield* isVerified
        }).pipe(Effect.scoped)
    )
  }
})

layer(stores, live)("a process killed with SIGKILL", (it) => {
  it.effect(
    "loses no settled charge and books none twice, and its holds and leases come back",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { databaseUrl } = yield* TestStores
        const userId = yield* makeUser
        const keyId = yield* makeKey(userId, 100_000)
        const balance = dollars(100_000)
        yield* topUp(userId, balance)
        const dataDir = yield* temporaryDirectory
        const settled = new Map<string, bigint>()
        for (let kill = 1; kill <= kills; kill++) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const process = yield* startLedgerProcess({
                databaseUrl,
                dataDir,
                userId,
                keyId,
                perToken: String(dollars(0.001)),
                calls: 0,
                atOnce: 50,
                lastsMillis: 20,
                seed: seed + kill
              })
              yield* Effect.promise(() => process.ready)
              process.go()
              yield* Effect.promise(() => process.until(20 + kill * 150))
              yield* Effect.promise(process.kill)
              for (const [id, charge] of process.charges) settled.set(id, charge)
            })
          )
        }
        const before = yield* limitOf(`credits:${userId}`)
        assert.notStrictEqual(before?.leased, "0", "the killed process held something")
        // The next process to use the directory settles what is left in the log, and gives back the rest.
        yield* Effect.scoped(sideIn(dataDir))
        const entries = yield* sql<{ id: string; amount: string }>`SELECT request_id AS id, amount::text
        FROM entries WHERE user_id = ${userId} AND kind = 'charge'`
        const booked = new Map(entries.map(({ amount, id }) => [id, BigInt(amount)]))
        assert.strictEqual(booked.size, entries.length)
        const wrong = Array.from(settled).filter(([id, charge]) => charge > 0n && booked.get(id) !== charge)
        assert.deepStrictEqual(wrong, [], `SIMULATION_SEED=${seed}`)
        const sum = String(totalOf(booked.values()))
        for (const limit of [`credits:${userId}`, `key:${keyId}`]) {
          assert.deepInclude(yield* limitOf(limit), { settled: sum, leased: "0" })
        }
        yield* isVerified
      }).pipe(Effect.scoped),
    600_000
  )
})
