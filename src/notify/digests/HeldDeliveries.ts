import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"

/** All are counted again after so many times as long as it took. */
const countRest = 20

/** Deliveries that are held, of all processes, as they were lately. */
export class HeldDeliveries extends Context.Service<
  HeldDeliveries,
  {
    readonly count: () => number
    /** how long the one has been due that is due longest and is still held; 0 where none is */
    readonly lateMillis: () => number
  }
>()("signalbox/notify/HeldDeliveries") {
  static readonly layer = Layer.effect(
    HeldDeliveries,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      let [held, lateMillis] = [0, 0]
      const failed = Effect.catch((error) =>
        Effect.logDebug("deliveries that are held were not counted", error)
      )
      // By an index, however many are held.
      const look = sql<{ late: number }>`SELECT coalesce(greatest(extract(epoch FROM jobs_now() - (
          SELECT d.held_until FROM deliveries d WHERE d.held_until IS NOT NULL ORDER BY d.held_until LIMIT 1)), 0), 0)::float8
          * 1000 AS late`
      const late = Effect.gen(function* () {
        const [row] = yield* look
        lateMillis = row?.late ?? 0
        yield* Effect.sleep(limits.jobCountsMillis)
      })
      const count = Effect.gen(function* () {
        const began = performance.now()
        const [row] = yield* sql<{
          held: number
        }>`SELECT count(*)::float8 AS held FROM deliveries WHERE held_until IS NOT NULL`
        held = row?.held ?? 0
        yield* Effect.sleep(
          Math.max(limits.deliveriesCountedEveryMillis, countRest * (performance.now() - began))
        )
      })
      const pause = Effect.sleep(limits.jobCountsMillis)
      for (const loop of [late, count])
        yield* Effect.forkScoped(
          Effect.forever(
            loop.pipe(
              Effect.tapError(() => pause),
              failed
            )
          )
        )
      return HeldDeliveries.of({ count: () => held, lateMillis: () => lateMillis })
    })
  )
}
