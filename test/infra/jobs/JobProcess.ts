import { writeSync } from "node:fs"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { handleWith, offerSome, planned } from "./JobLoad.ts"
import { impatient } from "./JobStage.ts"

/** A process that offers and does planned jobs until it is killed; its first line says that it has begun. */
export interface JobProcessOptions {
  readonly databaseUrl: string
  /** of the ids of its jobs */
  readonly prefix: string
  readonly seed: number
}

const { databaseUrl, prefix, seed }: JobProcessOptions = JSON.parse(process.argv[2] ?? "{}")

const program = Effect.gen(function* () {
  const [jobs, sql] = [yield* Jobs, yield* SqlClient]
  const random = new SeededRandom(seed)
  yield* jobs.work(planned, {
    concurrency: 8,
    attemptMillis: 30_000,
    handle: handleWith({ random, sql, room: sql, isRevived: () => false, mostMillis: 30 })
  })
  for (let n = 0; ; n++) {
    yield* offerSome(`${prefix}-${n}`, random)
    if (n === 0) writeSync(1, "begun\n")
    yield* Effect.sleep(random.below(30))
  }
})

await Effect.runPromise(
  Effect.scoped(program).pipe(
    Effect.provide(
      Jobs.layer.pipe(
        Layer.provide(Notices.layer),
        Layer.provideMerge(Postgres.layer),
        Layer.provide(Readiness.layer),
        Layer.provide(AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl), limits: impatient }))
      )
    )
  )
)
