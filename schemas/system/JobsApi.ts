import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AdministratorsOnly, Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { NotFound, ServiceUnavailable } from "../core/Problem.ts"
import { Timestamp } from "../core/Timestamp.ts"

/** Jobs of a list, and of one redrive. */
export const deadJobsMax = 100
export const redrivenMax = 10_000

const Name = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z0-9-]{0,62}$/u, { expected: "the name of a queue" })
)

const JobId = Schema.String.check(
  Schema.isMinLength(1, { expected: "1 to 200 characters" }),
  Schema.isMaxLength(200, { expected: "1 to 200 characters" })
)

const idsExpected = `1 to ${deadJobsMax} ids`

export const JobQueue = Schema.Struct({
  queue: Schema.String,
  waiting: Schema.Int.annotate({ description: "Jobs that are not ended" }),
  dead: Schema.Int.annotate({ description: "Jobs that were given up" }),
  late_seconds: Schema.Number.annotate({
    description: "For how long the first due lane has waited; 0: none does"
  })
}).annotate({ identifier: "JobQueue" })
export type JobQueue = typeof JobQueue.Type

export const DeadJob = Schema.Struct({
  queue: Schema.String,
  lane: Schema.String,
  id: Schema.String,
  attempts: Schema.Int,
  error: Schema.NullOr(Schema.String).annotate({ description: "What the last attempt said" }),
  offered_at: Timestamp,
  ended_at: Timestamp
}).annotate({ identifier: "DeadJob", description: "A job that was given up, without its payload" })
export type DeadJob = typeof DeadJob.Type

export const JobList = Schema.Struct({
  queues: Schema.Array(JobQueue),
  dead: Schema.Array(DeadJob).annotate({ description: `The newest ${deadJobsMax}` })
}).annotate({ identifier: "JobList" })

export const JobRedrive = Schema.Struct({
  ids: Schema.optionalKey(
    Schema.Array(JobId)
      .check(
        Schema.isMinLength(1, { expected: idsExpected }),
        Schema.isMaxLength(deadJobsMax, { expected: idsExpected })
      )
      .annotate({ description: `Left out: the oldest ${redrivenMax}` })
  )
}).annotate({ identifier: "JobRedrive" })

/** The jobs of all processes on one Postgres, for administrators. Errors in the plain form. */
export class JobsApi extends HttpApiGroup.make("jobs")
  .add(
    HttpApiEndpoint.get("listJobs", "/jobs", { success: JobList, error: ServiceUnavailable.plain })
      .annotate(OpenApi.Summary, "List queues and dead jobs")
      .annotate(OpenApi.Description, "Of all processes on one Postgres; payloads are not shown."),
    HttpApiEndpoint.post("redriveJobs", "/jobs/:queue/redrive", {
      params: { queue: Name },
      payload: JobRedrive,
      success: Schema.Struct({ redriven: Schema.Int }).annotate({ identifier: "JobsRedriven" }),
      error: [NotFound.plain, ServiceUnavailable.plain]
    })
      .annotate(OpenApi.Summary, "Have dead jobs wait again")
      .annotate(
        OpenApi.Description,
        "At the ends of their lanes, in their order. One whose id waits already stays dead. Attempts are told that an " +
          "earlier one may have had its effect."
      )
  )
  .annotate(AdministratorsOnly, true)
  .middleware(Authorization)
  .middleware(JsonBody)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Jobs",
      description: "For account keys of administrators: work that waits, and work that was given up."
    })
  )
  .prefix("/api/v1/admin") {}
