import { join } from "node:path"
import { Effect, Exit, Layer, Redacted, Schema, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { CaseContext, Measurement, Stage, StageContext } from "#bench/harness/Suite.ts"
import { cpuMillis, descendants } from "#bench/harness/ProcessUse.ts"
import { AppConfig } from "#src/Config.ts"
import { queue } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { migrate } from "#src/infra/postgres/Migrations.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { limits } from "#src/Limits.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import { start } from "#src/infra/postgres/EmbeddedPostgres.ts"

/** One Postgres for all cases, one after the other. */
export interface Given {
  readonly databaseUrl: string
  /** of the process that started Postgres */
  readonly pid: number
}

export const stage = async ({ directory }: StageContext): Promise<Stage<Given>> => {
  const scope = Effect.runSync(Scope.make())
  const { url } = await Effect.runPromise(Scope.provide(start(join(directory, "data"), limits), scope))
  const databaseUrl = Redacted.value(url)
  await Effect.runPromise(
    Effect.provide(migrate(postgresMigrations), Postgres.layer.pipe(Layer.provide(configOf(databaseUrl))))
  )
  return {
    given: { databaseUrl, pid: process.pid },
    leave: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

const configOf = (databaseUrl: string) => AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl) })

/** The payload of a job: an id and a few words. */
export const Payload = Schema.Struct({ id: Schema.String, event: Schema.String })
export type Payload = typeof Payload.Type

export const measured = queue("bench", Payload)

export const payload: Payload = { id: "msg_0123456789abcdef01234567", event: "message.created" }

/** Fills the tables anew, and runs the case with the clients of a process. */
export const onJobs = (
  { given }: CaseContext<Given>,
  run: Effect.Effect<Measurement, unknown, Jobs | SqlClient | Scope.Scope>
): Promise<Measurement> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`TRUNCATE jobs, jobs_ended, job_lanes`
    return yield* run
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Jobs.layer.pipe(
        Layer.provide(Notices.layer),
        Layer.provideMerge(Postgres.layer),
        Layer.provide(Readiness.layer),
        Layer.provide(configOf(given.databaseUrl))
      )
    ),
    Effect.runPromise
  )

/** Jobs that wait, the oldest first in their lanes, as offers leave them. */
export const fill = Effect.fnUntraced(function* (queueName: string, jobs: number, lanes: number) {
  const sql = yield* SqlClient
  yield* sql`INSERT INTO job_lanes (queue, lane, due_at, waiting)
    SELECT ${queueName}, 'lane ' || n, now(), ${Math.ceil(jobs / lanes)}::integer FROM generate_series(1, ${lanes}::integer) AS n`
  yield* sql`INSERT INTO jobs (queue, lane, seq, id, payload, offered_at)
    SELECT ${queueName}, 'lane ' || n, nextval('job_seqs'), ${queueName} || '-' || n || '-' || m, ${JSON.stringify(payload)}::jsonb, now()
    FROM generate_series(1, ${Math.ceil(jobs / lanes)}::integer) AS m, generate_series(1, ${lanes}::integer) AS n`
})

export const fillEnded = Effect.fnUntraced(function* (jobs: number) {
  const sql = yield* SqlClient
  yield* sql`INSERT INTO jobs_ended
    SELECT 'bench', 'lane ' || n % 1000, nextval('job_seqs'), 'ended-' || n, 'done', 1, false, NULL, ${JSON.stringify(payload)}::jsonb,
      now(), now() FROM generate_series(1, ${jobs}::integer) AS n`
})

/** CPU per job of this process and of Postgres, while a number of jobs is done. */
export const costing = Effect.fnUntraced(function* <E, R>(
  { given }: CaseContext<Given>,
  work: Effect.Effect<number, E, R>
) {
  const postgres = () =>
    descendants(given.pid)
      .filter((pid) => pid !== process.pid)
      .reduce((sum, pid) => sum + cpuMillis(pid), 0)
  const [own, theirs, startedAt] = [process.cpuUsage(), postgres(), performance.now()]
  const jobs = yield* work
  const elapsedMillis = performance.now() - startedAt
  const { system, user } = process.cpuUsage(own)
  const measurement: Measurement = {
    work: jobs,
    elapsedMillis,
    cpuMillis: (user + system) / 1_000,
    figures: {
      "node µs/job": (user + system) / jobs,
      "Postgres µs/job": ((postgres() - theirs) * 1_000) / jobs
    }
  }
  return measurement
})
