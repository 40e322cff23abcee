import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { TestStores } from "#test/harness/TestStores.ts"

/** As a process has them. */
const ofProcess = (name: string) =>
  Effect.flatMap(Secrets, (secrets) => secrets.of(name)).pipe(Effect.provide(Layer.fresh(Secrets.layer)))

const stored = (name: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql<{ bytes: Uint8Array }>`SELECT bytes FROM secrets WHERE name = ${name}`
  )

layer(TestStores.layer)("secrets of the installation", (it) => {
  it.effect("are 32 bytes that differ from name to name and stay the same", () =>
    Effect.gen(function* () {
      const one = yield* ofProcess("one")
      const two = yield* ofProcess("two")
      assert.strictEqual(one.length, 32)
      assert.notDeepEqual(one, two)
      assert.deepStrictEqual(yield* ofProcess("one"), one)
      assert.deepStrictEqual((yield* stored("one"))[0]?.bytes, one)
    })
  )

  it.effect("are the same for processes that ask first at the same time", () =>
    Effect.gen(function* () {
      for (let round = 0; round < 20; round++) {
        const all = yield* Effect.all(
          Array.from({ length: 6 }, () => ofProcess(`round-${round}`)),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(new Set(all.map((bytes) => Buffer.from(bytes).toString("hex"))).size, 1)
      }
    })
  )

  it.effect("are asked of Postgres once a process, and forgotten with the transaction that made them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const secrets = yield* Secrets
      const made = yield* secrets.of("kept")
      yield* sql`DELETE FROM secrets WHERE name = 'kept'`
      assert.deepStrictEqual(yield* secrets.of("kept"), made)
      let undone: Uint8Array | undefined
      const failed = Effect.gen(function* () {
        undone = yield* secrets.of("undone")
        return yield* Effect.fail("rolled back")
      })
      yield* Effect.flip(sql.withTransaction(failed))
      const later = yield* secrets.of("undone")
      assert.notDeepEqual(later, undone)
      assert.deepStrictEqual((yield* stored("undone"))[0]?.bytes, later)
    }).pipe(Effect.provide(Layer.fresh(Secrets.layer)))
  )

  it.effect("have names of one form", () =>
    Effect.gen(function* () {
      for (const name of ["", "Upper", "a b", "x".repeat(64)]) {
        assert.isTrue(Exit.hasDies(yield* Effect.exit(ofProcess(name))), name)
      }
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(ofProcess("x".repeat(63)))))
    })
  )
})
