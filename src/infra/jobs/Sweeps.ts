import { Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { later, queue } from "./Job.ts"
import { Jobs } from "./Jobs.ts"

interface Sweep<E, R> {
  /** a name of its own in all of the server: lower-case letters, digits and hyphens */
  readonly name: string
  /** from one end to the next beginning */
  readonly everyMillis: number
  /** one that takes longer is interrupted, and begun again: work that was done before counts */
  readonly attemptMillis?: number
  readonly run: Effect.Effect<unknown, E, R>
}

const attemptMillisDefault = 600_000

/**
 * Work that is done every so often by one of all processes that have it: a job that never ends, and is due again after each
 * time. A process without the room does not take it.
 */
export const layer = <E, R>({
  attemptMillis = attemptMillisDefault,
  everyMillis,
  name,
  run
}: Sweep<E, R>): Layer.Layer<never, SqlError, Jobs | R> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const sweeps = queue(`sweep-${name}`, Schema.Struct({}), Infinity)
      const once = { lane: name, id: name, payload: {} }
      yield* jobs.offer(sweeps, [once])
      yield* jobs.work(sweeps, {
        concurrency: 1,
        attemptMillis,
        handle: () =>
          run.pipe(
            Effect.tapError((error) => Effect.logWarning(`the sweep ${name} failed`, error)),
            Effect.as(later(everyMillis))
          )
      })
    })
  )

/** Ended jobs that are old, and lanes that are empty. */
export const ofJobs = Layer.unwrap(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const { deleteOld } = yield* Jobs
    return layer({ name: "jobs", everyMillis: limits.sweepEveryMillis, run: deleteOld })
  })
)
