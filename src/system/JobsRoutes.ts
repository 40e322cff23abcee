import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { type DeadJob, deadJobsMax, redrivenMax } from "#schemas/system/JobsApi.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import type * as JobStore from "#src/infra/jobs/JobStore.ts"

const resource = ({ endedAt, offeredAt, ...job }: JobStore.DeadJob): DeadJob => ({
  queue: job.queue,
  lane: job.lane,
  id: job.id,
  attempts: job.attempts,
  error: job.error,
  offered_at: offeredAt.toISOString(),
  ended_at: endedAt.toISOString()
})

const unavailable = () => Effect.fail(ServiceUnavailable.of("Postgres is away"))

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "jobs",
  Effect.fnUntraced(function* (handlers) {
    const jobs = yield* Jobs
    return handlers.handleAll({
      listJobs: () =>
        Effect.gen(function* () {
          const queues = (yield* jobs.counts).map(({ dead, lateMillis, queue, waiting }) => ({
            queue,
            waiting,
            dead,
            late_seconds: Math.round(lateMillis) / 1_000
          }))
          return { queues, dead: (yield* jobs.dead(undefined, deadJobsMax)).map(resource) }
        }).pipe(Effect.catchTag("SqlError", unavailable)),
      redriveJobs: ({ params: { queue }, payload: { ids } }) =>
        Effect.gen(function* () {
          const redriven = yield* jobs.redrive(queue, ids, redrivenMax)
          const isKnown = redriven > 0 || (yield* jobs.counts).some((one) => one.queue === queue)
          if (!isKnown) return yield* Effect.fail(NotFound.of(`queue: no job of ${queue} waits or is dead`))
          return { redriven }
        }).pipe(Effect.catchTag("SqlError", unavailable))
    })
  })
)
