import {
  BadRequest,
  bodyOf,
  headersOf,
  NotFound,
  PayloadTooLarge,
  type Problem,
  RateLimited,
  ServiceUnavailable,
  StorageFull,
  Unauthorized
} from "#schemas/core/Problem.ts"
import type { CollectAnswer } from "#schemas/analytics/CollectEvent.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import type { LogFull, LogUnavailable } from "#streams/kernel/DurableLog.ts"

/** An answer of the ingest endpoints, before it is bytes. */
export interface IngestAnswer {
  readonly status: number
  /** `{"error": …}` or a `CollectAnswer`; '' for none */
  readonly body: string
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
}

const json: readonly [string, string] = ["Content-Type", "application/json"]

const answer = (problem: Problem): IngestAnswer => ({
  status: problem.status,
  body: bodyOf(problem, "plain"),
  headers: [json, ...Object.entries(headersOf(problem))]
})

/** The event is on disk, or is one that counts nowhere. */
export const taken: IngestAnswer = { status: 202, body: "", headers: [] }

export const unknownSite = answer(NotFound.of("Unknown site"))

export const badSecret = answer(Unauthorized.of("Invalid or missing site secret"))

export const tooManyEvents = (max: number): IngestAnswer =>
  answer(PayloadTooLarge.of(`At most ${max} events in a call`))

export const invalid = (fault: FieldFault): IngestAnswer => answer(BadRequest.of(fault.message))

/** Another process counts: a load balancer asks that one. */
export const standby = (text: string): IngestAnswer =>
  answer(ServiceUnavailable.of(text, { code: "standby", retryAfterSeconds: 1 }))

const tooFast = answer(RateLimited.of("Rate limit exceeded"))

export const rateLimited = (retryAfterSeconds: number): IngestAnswer => ({
  ...tooFast,
  headers: [json, ["retry-after", String(retryAfterSeconds)]]
})

/** A disk that fails may be back in a moment: the log tries by itself. */
const retryAfterFailureSeconds = 1

/** The answer to a refusal by the log: nothing of the request was stored. */
export const refused = (refusal: LogFull | LogUnavailable): IngestAnswer => {
  if (refusal._tag === "LogFull") {
    const { retryAfterSeconds } = refusal
    return answer(RateLimited.of("More events are waiting than there is room for", { retryAfterSeconds }))
  }
  const details = { retryAfterSeconds: retryAfterFailureSeconds }
  return answer(
    refusal.reason === "disk_full"
      ? StorageFull.of("The disk is full", details)
      : ServiceUnavailable.of("Events cannot be stored at the moment", details)
  )
}

/** 400 only if every event has an error. Source: contract/analytics#collect. */
export const collected = (results: CollectAnswer["results"]): IngestAnswer => {
  const accepted = results.filter((result) => result.stored).length
  const answer: CollectAnswer = { accepted, results }
  return results.every((result) => result.error !== undefined)
    ? { status: 400, body: JSON.stringify({ error: "No event was accepted", ...answer }), headers: [json] }
    : { status: 202, body: JSON.stringify(answer), headers: [json] }
}
