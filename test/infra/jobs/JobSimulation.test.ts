import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { JobStore } from "#src/infra/jobs/JobStore.ts"
import { JobWorker } from "#src/infra/jobs/JobWorker.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { createTables, faults, handleWith, offerSome, planned, unended } from "./JobLoad.ts"
import { jobsWith } from "./JobStage.ts"

const served = Layer.effectDiscard(createTables).pipe(
  Layer.provideMerge(jobsWith({ jobLeaseMillis: 300, jobPollMillis: 20, jobStopMillis: 200 }))
)

/** A worker that can die: it renews and settles nothing more, and its attempts go on. */
const born = Effect.fnUntraced(function* (random: SeededRandom, isRevived: () => boolean) {
  const [sql, { limits }] = [yield* SqlClient, yield* AppConfig]
  const handle = handleWith({ random, sql, room: sql, isRevived, mostMillis: 20 })
  const options = { concurrency: 6, attemptMillis: 150, handle }
  const worker = new JobWorker(planned, options, { store: new JobStore(sql), sql, holder: "w", limits })
  const fibers = yield* Effect.forEach(
    [
      worker.run,
      Effect.forever(Effect.andThen(worker.renew, Effect.sleep(100))),
      Effect.forever(Effect.andThen(worker.expire, Effect.sleep(20)))
    ],
    (loop) => Effect.forkScoped(loop)
  )
  return { worker, dies: Fiber.interruptAll(fibers) }
})

/** Offers, deaths and stops in a random order; then everything ends, dead jobs are revived, and the record is checked. */
const simulate = Effect.fnUntraced(function* (random: SeededRandom, seed: number) {
  const [jobs, sql] = [yield* Jobs, yield* SqlClient]
  yield* sql`TRUNCATE accepted, attempts, room_rows, jobs, jobs_ended, job_lanes`
  let isWell = false
  const next = () => born(random, () => isWell)
  const workers = [yield* next(), yield* next()]
  for (let n = 0; n < 25; n++) {
    yield* offerSome(`${seed}-${n}`, random)
    yield* Effect.sleep(random.below(20))
    const which = random.below(2)
    if (random.chance(0.1)) yield* workers[which]!.dies
    else if (random.chance(0.05)) yield* Effect.andThen(workers[which]!.worker.stop, workers[which]!.dies)
    else continue
    workers[which] = yield* next()
  }
  const allEnd = eventually(
    "all have ended",
    Effect.map(unended, (left) => left === 0)
  )
  yield* allEnd
  assert.deepStrictEqual(yield* faults, [])
  isWell = true
  const letters = yield* jobs.dead(planned.name, 1_000)
  assert.strictEqual(yield* jobs.redrive(planned.name, undefined, 1_000), letters.length)
  yield* allEnd
  assert.deepStrictEqual(yield* faults, [])
  assert.isEmpty(yield* jobs.dead(planned.name, 1))
  yield* Effect.forEach(workers, ({ dies }) => dies)
}, Effect.scoped)

layer(served, { excludeTestServices: true })("jobs, simulated", (it) => {
  it.effect("are done once and in order, whichever workers die or stop", () => forSeeds(1, simulate))
})
