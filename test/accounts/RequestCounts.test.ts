import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { RequestCounts } from "#src/accounts/RequestCounts.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const users = Array.from({ length: 20 }, (_, index) => `usr_${String(index).padStart(22, "0")}`)

/** An unknown user: the table refuses their count. */
const stranger = "usr_stranger"

const requestsOf = Effect.fnUntraced(function* (user: string) {
  const counts = yield* RequestCounts
  return (yield* counts.ofUser(user)).today
})

layer(RequestCounts.layer.pipe(Layer.provideMerge(TestStores.layer)), {
  excludeTestServices: true,
  timeout: 60_000
})("request counts", (it) => {
  it.effect("that Postgres refuses are set aside, the others are current, and a retry brings them in", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { quarantine, record } = yield* RequestCounts
      for (const id of users)
        yield* sql`INSERT INTO users ${sql.insert({ id, email: `${id}@example.org`, name: "x", role: "user" })}`
      const now = Date.now()
      for (const [index, user] of users.entries()) {
        if (index === 7) record(stranger, false, now)
        record(user, false, now)
        record(user, true, now)
      }
      for (const user of users) assert.strictEqual(yield* requestsOf(user), 2)
      const [aside, ...others] = quarantine.list()
      assert.lengthOf(others, 0)
      assert.include(aside?.problem, "23503")
      const place = aside?.offset ?? -1
      assert.strictEqual((yield* Effect.flip(quarantine.retry(place)))._tag, "SinkRefused")
      yield* sql`INSERT INTO users ${sql.insert({ id: stranger, email: "s@example.org", name: "x", role: "user" })}`
      yield* quarantine.retry(place)
      assert.strictEqual(yield* requestsOf(stranger), 1)
      assert.strictEqual((yield* Effect.flip(quarantine.drop(place)))._tag, "NotSetAside")
    })
  )

  it.effect("wait, and are not set aside, while the table takes none of them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { quarantine, record } = yield* RequestCounts
      const before = yield* requestsOf(users[0] ?? "")
      yield* sql`ALTER TABLE request_counts ADD CONSTRAINT never CHECK (false) NOT VALID`
      for (const user of users) record(user, false, Date.now())
      yield* Effect.flip(requestsOf(users[0] ?? ""))
      assert.deepStrictEqual(quarantine.list(), [])
      yield* sql`ALTER TABLE request_counts DROP CONSTRAINT never`
      assert.strictEqual(yield* requestsOf(users[0] ?? ""), before + 1)
    })
  )
})
