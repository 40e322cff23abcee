import { PgClient } from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Queue } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { anotherProcess, counterOf, isAt, processWith } from "./Processes.ts"

const live = { excludeTestServices: true } as const

layer(TestStores.layer, live)("notices", (it) => {
  it.effect(
    "wake subscribers of the topic at once in this process and soon in others, and no other topic's",
    () =>
      Effect.gen(function* () {
        const [here, there] = [yield* anotherProcess, yield* anotherProcess]
        const own = yield* counterOf(here, "jobs:mail")
        const others = yield* counterOf(there, "jobs:mail")
        const elsewhere = yield* counterOf(there, "jobs:notify")
        yield* here.publish("jobs:mail")
        assert.strictEqual(own.count, 1)
        yield* isAt(others, 1)
        yield* there.publish("jobs:notify")
        yield* here.publish("last")
        const last = yield* counterOf(there, "last")
        yield* isAt(last, 1)
        assert.deepStrictEqual([own.count, others.count, elsewhere.count], [1, 1, 1])
      }).pipe(Effect.scoped)
  )

  it.effect("wait for the commit, and are not sent when it is rolled back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const [here, there] = [yield* anotherProcess, yield* anotherProcess]
      const [own, others] = [yield* counterOf(here, "a"), yield* counterOf(there, "a")]
      const [undone, undoneThere] = [yield* counterOf(here, "b"), yield* counterOf(there, "b")]
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* here.publish("a")
          yield* sql`SELECT 1`
          assert.strictEqual(own.count, 0)
        })
      )
      assert.strictEqual(own.count, 1)
      yield* Effect.exit(sql.withTransaction(Effect.andThen(here.publish("b"), Effect.fail("no"))))
      yield* isAt(others, 1)
      yield* here.publish("a")
      yield* isAt(others, 2)
      assert.deepStrictEqual([undone.count, undoneThere.count], [0, 0])
    }).pipe(Effect.scoped)
  )

  it.effect("of 5,000 topics at once arrive in a few payloads, each topic once", () =>
    Effect.gen(function* () {
      const here = yield* processWith({ noticeGatherMillis: 300 })
      const there = yield* anotherProcess
      const pg = yield* PgClient
      const raw = yield* pg.listen("notices")
      const topics = Array.from({ length: 5_000 }, (_, index) => `topic:${index}:${"x".repeat(index % 150)}`)
      const counts = new Map<string, number>()
      for (const topic of topics)
        yield* there.subscribe(topic, () => void counts.set(topic, (counts.get(topic) ?? 0) + 1))
      for (const topic of topics) yield* Effect.andThen(here.publish(topic), here.publish(topic))
      yield* eventually(
        "all have arrived",
        Effect.sync(() => counts.size === topics.length)
      )
      assert.deepStrictEqual(new Set(counts.values()), new Set([1]))
      const payloads = (yield* Queue.takeAll(raw)).map(({ payload }) => payload)
      assert.isAbove(payloads.length, 1)
      assert.isBelow(payloads.length, 100)
      for (const payload of payloads) assert.isBelow(payload.length, 8_000)
    }).pipe(Effect.scoped)
  )

  it.effect("beyond what may wait wake everybody", () =>
    Effect.gen(function* () {
      const here = yield* processWith({ noticesUnsent: 100, noticeGatherMillis: 200 })
      const there = yield* anotherProcess
      const others = yield* counterOf(there, "unrelated")
      for (let index = 0; index < 101; index++) yield* here.publish(`many:${index}`)
      yield* isAt(others, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("wake every subscriber again when the connection that listens was lost", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const [here, there] = [yield* anotherProcess, yield* anotherProcess]
      const counter = yield* counterOf(there, "a")
      const ended = yield* sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'LISTEN%'`
      assert.isAtLeast(ended.length, 2)
      yield* isAt(counter, 1)
      yield* here.publish("a")
      yield* isAt(counter, 2)
    }).pipe(Effect.scoped)
  )

  it.effect("are sent as the process ends", () =>
    Effect.gen(function* () {
      const there = yield* anotherProcess
      const others = yield* counterOf(there, "farewell")
      yield* Effect.scoped(Effect.flatMap(anotherProcess, ({ publish }) => publish("farewell")))
      yield* isAt(others, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("go on when a subscriber throws or has gone, and are refused a topic with spaces", () =>
    Effect.gen(function* () {
      const here = yield* anotherProcess
      yield* here.subscribe("a", () => {
        throw new Error("a subscriber's own fault")
      })
      const own = yield* counterOf(here, "a")
      const gone = yield* Effect.scoped(counterOf(here, "a"))
      yield* here.publish("a")
      assert.deepStrictEqual([own.count, gone.count], [1, 0])
      for (const topic of ["", "*", "a b", "é", "x".repeat(201)]) {
        assert.isTrue(Exit.hasDies(yield* Effect.exit(here.publish(topic))), topic)
        assert.isTrue(Exit.hasDies(yield* Effect.exit(here.subscribe(topic, () => undefined))), topic)
      }
    }).pipe(Effect.scoped)
  )
})
