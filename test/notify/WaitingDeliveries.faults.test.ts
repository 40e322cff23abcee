import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { HeldDeliveries } from "#src/notify/digests/HeldDeliveries.ts"
import * as WaitingDeliveries from "#src/notify/sending/WaitingDeliveries.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { live } from "./Stage.ts"

/** While a transaction of another connection has the table of jobs, nobody can count them. */
const whileLocked = <A, E, R>(use: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [locked, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const lock = sql`LOCK TABLE jobs`.pipe(
      Effect.andThen(Deferred.succeed(locked, undefined)),
      Effect.andThen(Deferred.await(over))
    )
    const holding = yield* Effect.forkChild(sql.withTransaction(lock))
    yield* Deferred.await(locked)
    const used = yield* use
    yield* Deferred.succeed(over, undefined)
    yield* Fiber.join(holding)
    return used
  })

layer(TestStores.layerWith({ limits: { deliveriesWaiting: -1, deliveriesCountedMillis: 60_000 } }), live)(
  "counting what owners have waiting",
  (it) => {
    it.effect("takes one connection, and one scan for all of them, however many send at once", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { refuseOver } = yield* WaitingDeliveries.make
        const owners = Array.from({ length: 30 }, (_, n) => `usr_${n}`)
        const counting = sql`SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%owner%'`
        const refusals = yield* whileLocked(
          Effect.gen(function* () {
            const asked = yield* Effect.forkChild(
              Effect.forEach(owners, (owner) => Effect.flip(refuseOver(owner)), { concurrency: "unbounded" })
            )
            yield* eventually(
              "one counts",
              Effect.map(counting, ({ length }) => length > 0)
            ).pipe(Effect.timeout("20 seconds"))
            yield* Effect.sleep(200)
            assert.lengthOf(yield* counting, 1)
            return asked
          })
        )
        assert.lengthOf(yield* Fiber.join(refusals), owners.length)
      }).pipe(Effect.provide(HeldDeliveries.layer))
    )
  }
)

/** So many deliveries of an owner that are held. */
const hold = (owner: string, count: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`INSERT INTO messages (id, user_id, project_id, app, message, body_bytes, body_format, priority, attachments,
        recipients, queued_for_digest, link_hash)
      VALUES (${`msg_${owner}`}, ${owner}, 'pjt', 'app', 'text', 0, 'auto', 'normal', 0, 1, 1, ${Buffer.from(owner)})`
    yield* sql`INSERT INTO deliveries (message_id, channel_id, id, subscriber_id, kind, held_until)
      SELECT ${`msg_${owner}`}, 'chn_' || n, 'dlv_' || ${owner}::text || n, 'sbr', 'push', now() + interval '1 hour'
      FROM generate_series(1, ${count}::integer) AS n`
  })

layer(
  TestStores.layerWith({
    limits: { deliveriesWaiting: 1, deliveriesCountedMillis: 0, deliveriesCountedEveryMillis: 50 }
  }),
  live
)("a limit of what owners have waiting", (it) => {
  it.effect("counts messages that are held for digests, each owner's own", () =>
    Effect.gen(function* () {
      const { refuseOver } = yield* WaitingDeliveries.make
      yield* refuseOver("usr_many")
      yield* hold("usr_many", 2)
      yield* hold("usr_one", 1)
      yield* eventually("the one with more of them is refused", isRefused(refuseOver("usr_many")))
      yield* refuseOver("usr_one")
    }).pipe(Effect.provide(HeldDeliveries.layer))
  )

  it.effect("goes by the last count while the next one is made, and by what was added since", () =>
    Effect.gen(function* () {
      const { add, refuseOver } = yield* WaitingDeliveries.make
      yield* hold("usr_held", 2)
      yield* eventually("it is counted", isRefused(refuseOver("usr_held")))
      const found: Array<boolean> = []
      const look = (owner: string) =>
        Effect.map(Effect.timeout(isRefused(refuseOver(owner)), "10 seconds"), (is) => found.push(is))
      yield* whileLocked(
        Effect.gen(function* () {
          yield* look("usr_held")
          for (let n = 0; n < 2; n++) {
            add("usr_adds", 1)
            yield* look("usr_adds")
          }
        })
      )
      assert.deepStrictEqual(found, [true, false, true])
      yield* eventually(
        "the count has nothing of what was added",
        Effect.map(isRefused(refuseOver("usr_adds")), (is) => !is)
      )
    }).pipe(Effect.provide(HeldDeliveries.layer))
  )
})

const isRefused = <E, R>(refusal: Effect.Effect<void, E, R>) =>
  Effect.match(refusal, { onFailure: () => true, onSuccess: () => false })
