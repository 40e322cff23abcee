import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as WaitingDeliveries from "#src/notify/sending/WaitingDeliveries.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { live } from "./Stage.ts"

layer(TestStores.layerWith({ limits: { deliveriesWaiting: -1, deliveriesCountedMillis: 60_000 } }), live)(
  "counting what owners have waiting",
  (it) => {
    it.effect("takes one connection, and one scan for all of them, however many send at once", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { refuseOver } = yield* WaitingDeliveries.make
        const [locked, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const scan = yield* Effect.forkChild(
          sql.withTransaction(
            sql`LOCK TABLE jobs`.pipe(
              Effect.andThen(Deferred.succeed(locked, undefined)),
              Effect.andThen(Deferred.await(over))
            )
          )
        )
        yield* Deferred.await(locked)
        const owners = Array.from({ length: 30 }, (_, n) => `usr_${n}`)
        const refusals = yield* Effect.forkChild(
          Effect.forEach(owners, (owner) => Effect.flip(refuseOver(owner)), { concurrency: "unbounded" })
        )
        const counting = sql`SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%owner%'`
        yield* eventually(
          "one counts",
          Effect.map(counting, ({ length }) => length > 0)
        ).pipe(Effect.timeout("20 seconds"))
        yield* Effect.sleep(200)
        assert.lengthOf(yield* counting, 1)
        yield* Deferred.succeed(over, undefined)
        assert.lengthOf(yield* Fiber.join(refusals), owners.length)
        yield* Fiber.join(scan)
      })
    )
  }
)
