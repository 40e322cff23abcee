import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { queue } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { JobStore } from "#src/infra/jobs/JobStore.ts"
import { JobWorker } from "#src/infra/jobs/JobWorker.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { jobsWith, number } from "./JobStage.ts"

/** A worker with an attempt that does not end by itself. */
const hanging = Effect.fnUntraced(function* (name: string) {
  const [jobs, sql, { limits }] = [yield* Jobs, yield* SqlClient, yield* AppConfig]
  const stuck = queue(name, number)
  yield* jobs.offer(stuck, [{ lane: "a", payload: { n: 0 } }])
  const seen = { begun: 0, ended: 0 }
  const handle = () =>
    Effect.onInterrupt(
      Effect.suspend(() => {
        seen.begun++
        return Effect.never
      }),
      () => Effect.sync(() => void seen.ended++)
    )
  const options = { concurrency: 1, attemptMillis: 600_000, handle }
  const worker = new JobWorker(stuck, options, { store: new JobStore(sql), sql, holder: "w", limits })
  const running = yield* Effect.forkScoped(worker.run)
  yield* eventually(
    "it has begun",
    Effect.sync(() => seen.begun === 1)
  )
  return { seen, worker, running }
})

layer(jobsWith({ jobStopMillis: 40, jobLeaseMillis: 600_000 }), { excludeTestServices: true })(
  "an attempt that does not end",
  (it) => {
    it.effect("is interrupted when its lane is another's, and says nothing", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { seen, worker } = yield* hanging("taken")
        yield* worker.renew
        assert.deepStrictEqual(seen, { begun: 1, ended: 0 })
        yield* sql`UPDATE job_lanes SET epoch = nextval('job_epochs'), holder = 'other' WHERE queue = 'taken'`
        yield* worker.renew
        yield* eventually(
          "it is interrupted",
          Effect.sync(() => seen.ended === 1)
        )
        assert.strictEqual(worker.counts.late, 1)
        assert.deepStrictEqual(yield* sql`SELECT holder FROM job_lanes WHERE queue = 'taken'`, [
          { holder: "other" }
        ])
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("is interrupted at a stop, and its lane is free for one that is told so", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { running, seen, worker } = yield* hanging("stopped")
        yield* worker.stop
        yield* Fiber.interrupt(running)
        yield* eventually(
          "it is interrupted",
          Effect.sync(() => seen.ended === 1)
        )
        const [next] = yield* new JobStore(sql).claim("stopped", "other", 1, 1_000)
        assert.include(next, { attempts: 2, repeated: true })
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )
  }
)
