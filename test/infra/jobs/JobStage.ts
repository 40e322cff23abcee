import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import type { Limits } from "#src/Limits.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"

/** Short leases and pauses, so that deaths and outages are over soon. */
export const impatient = {
  jobLeaseMillis: 1_500,
  jobRetryMinMillis: 20,
  jobRetryMaxMillis: 100,
  jobPollMillis: 200,
  jobStopMillis: 2_000,
  retryMaxMillis: 300
}

/** Jobs on a Postgres of the file's own, with short pauses. */
export const jobsWith = (limits: Partial<Limits>) =>
  Jobs.layer.pipe(
    Layer.provideMerge(Notices.layer),
    Layer.provideMerge(
      TestStores.layerWith({
        limits: {
          jobRetryMinMillis: 20,
          jobRetryMaxMillis: 100,
          jobPollMillis: 200,
          jobCountsMillis: 50,
          ...limits
        }
      })
    )
  )

export const number = Schema.Struct({ n: Schema.Int })
export type Numbered = typeof number.Type

interface Ended {
  readonly lane: string
  readonly seq: string
  readonly id: string
  readonly outcome: string
  readonly attempts: number
  readonly repeated: boolean
  readonly last_error: string | null
}

/** The ended jobs of a queue, in the order of their ends. */
export const endedOf = (name: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) =>
      sql<Ended>`SELECT lane, seq::text, id, outcome, attempts, repeated, last_error FROM jobs_ended
        WHERE queue = ${name} ORDER BY ended_at, jobs_ended.seq`
  )

/** Waits until so many jobs of a queue have ended. */
export const ends = (name: string, jobs: number) =>
  eventually(
    `${jobs} jobs of ${name} have ended`,
    Effect.map(endedOf(name), (ended) => ended.length === jobs)
  )

/** Of a queue, as its lanes count them and as they are. */
export const waitingOf = (name: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ lanes: number; jobs: number }>`SELECT
        (SELECT coalesce(sum(waiting), 0)::int FROM job_lanes WHERE queue = ${name}) AS lanes,
        (SELECT count(*)::int FROM jobs WHERE queue = ${name}) AS jobs`,
      ([row]) => row
    )
  )
