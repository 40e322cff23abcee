import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AdministratorsOnly, Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { Conflict, NotFound, ServiceUnavailable } from "../core/Problem.ts"

/** Logs: events, imported events and calls for ClickHouse, settlements of calls and counts of requests for Postgres. */
export const LogName = Schema.Literals(["events", "imports", "calls", "ledger", "activity"]).annotate({
  identifier: "LogName",
  description: "events, imports, calls: into ClickHouse; ledger, activity: into Postgres"
})
export type LogName = typeof LogName.Type

/** The place of a record in its log, as a path segment. */
const Offset = Schema.String.check(
  Schema.isPattern(/^(0|[1-9]\d{0,14})$/u, { expected: "a whole number below 10^15" })
)

export const SetAsideRecord = Schema.Struct({
  log: LogName,
  offset: Schema.Int.annotate({ description: "Its place in the log" }),
  problem: Schema.String.annotate({ description: "What the store said" }),
  bytes: Schema.Int,
  accepted_at: Timestamp,
  set_aside_at: Timestamp
}).annotate({
  identifier: "SetAsideRecord",
  description: "An accepted record that its store takes in no company"
})
export type SetAsideRecord = typeof SetAsideRecord.Type

export const SetAsideList = Schema.Struct({ records: Schema.Array(SetAsideRecord) }).annotate({
  identifier: "SetAsideList"
})

const place = { log: LogName, offset: Offset }

/** The records of this server's logs that their stores refused, for administrators. Errors in the plain form. */
export class QuarantineApi extends HttpApiGroup.make("quarantine")
  .add(
    HttpApiEndpoint.get("listSetAside", "/quarantine", { success: SetAsideList })
      .annotate(OpenApi.Summary, "List the records that were set aside")
      .annotate(OpenApi.Description, "Of the server that is asked: each has logs of its own."),
    HttpApiEndpoint.post("retrySetAside", "/quarantine/:log/:offset/retry", {
      params: place,
      success: SetAsideRecord,
      error: [NotFound.plain, Conflict.plain, ServiceUnavailable.plain]
    })
      .annotate(OpenApi.Summary, "Bring a record in")
      .annotate(
        OpenApi.Description,
        "Offers it to its store again, which has it once afterwards. 409: the store still refuses it."
      ),
    HttpApiEndpoint.delete("dropSetAside", "/quarantine/:log/:offset", {
      params: place,
      success: SetAsideRecord,
      error: [NotFound.plain, ServiceUnavailable.plain]
    })
      .annotate(OpenApi.Summary, "Give a record up")
      .annotate(OpenApi.Description, "For good: of the ledger, what the call cost is never booked.")
  )
  .annotate(AdministratorsOnly, true)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Quarantine",
      description:
        "For account keys of administrators: records that were accepted, and that their store refuses."
    })
  )
  .prefix("/api/v1/admin") {}
