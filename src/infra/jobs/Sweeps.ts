import { Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { later, queue } from "./Job.ts"
import { Jobs } from "./Jobs.ts"

interface Sweep<E, R> {
  /** a name of its own in all of the server: lower-case letters, digits and hyphens */
  readonly name: string
  /** the limit that says how long it is from one end to the next beginning */
  readonly every: keyof Limits
  readonly run: Effect.Effect<unknown, E, R>
}

/**
 * Work that is done every so often by one of all processes that have it: a job that never ends, and is due again after each
 * time. A process without the room does not take it. One that takes longer than `sweepMillis` is begun again, and what it
 * did before counts.
 */
export const layer = <E, R>({
  every,
  name,
  run
}: Sweep<E, R>): Layer.Layer<never, SqlError, Jobs | AppConfig | R> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const jobs = yield* Jobs
      const sweeps = queue(`sweep-${name}`, Schema.Struct({}), { attemptsMax: Infinity })
      yield* jobs.offer(sweeps, [{ lane: name, id: name, payload: {} }])
      yield* jobs.work(sweeps, {
        concurrency: 1,
        attemptMillis: limits.sweepMillis,
        handle: () =>
          run.pipe(
            Effect.tapError((error) => Effect.logWarning(`the sweep ${name} failed`, error)),
            Effect.as(later(limits[every]))
          )
      })
    })
  )

/** Ended jobs that are old, and lanes that are empty. */
export const ofJobs = layer({
  name: "jobs",
  every: "sweepEveryMillis",
  run: Effect.flatMap(Jobs, ({ deleteOld }) => deleteOld)
})
