import type { CollectAnswer } from "#schemas/analytics/CollectEvent.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import type { LogFull, LogUnavailable } from "#streams/kernel/DurableLog.ts"

/** An answer of the ingest endpoints, before it is bytes. */
export interface IngestAnswer {
  readonly status: number
  /** flat `{"error": …}` or a `CollectAnswer`; '' for none */
  readonly body: string
  /** with 429 and 503 */
  readonly retryAfterSeconds?: number
}

const error = (status: number, text: string): IngestAnswer => ({
  status,
  body: JSON.stringify({ error: text })
})

/** The event is on disk, or is one that counts nowhere. */
export const taken: IngestAnswer = { status: 202, body: "" }

export const unknownSite = error(404, "Unknown site")

export const badSecret = error(401, "Invalid or missing site secret")

export const tooManyEvents = (max: number): IngestAnswer => error(413, `At most ${max} events in a call`)

export const invalid = (fault: FieldFault): IngestAnswer => error(400, fault.message)

/** Another process counts: a load balancer asks that one. */
export const standby = (text: string): IngestAnswer => ({
  status: 503,
  body: JSON.stringify({ error: text, code: "standby" }),
  retryAfterSeconds: 1
})

export const rateLimited = (retryAfterSeconds: number): IngestAnswer => ({
  ...error(429, "Rate limit exceeded"),
  retryAfterSeconds
})

/** A disk that fails may be back in a moment: the log tries by itself. */
const retryAfterFailureSeconds = 1

/** The answer to a refusal by the log: nothing of the request was stored. */
export const refused = (refusal: LogFull | LogUnavailable): IngestAnswer => {
  if (refusal._tag === "LogFull") {
    const text = "More events are waiting than there is room for"
    return { ...error(429, text), retryAfterSeconds: refusal.retryAfterSeconds }
  }
  return refusal.reason === "disk_full"
    ? { ...error(507, "The disk is full"), retryAfterSeconds: retryAfterFailureSeconds }
    : { ...error(503, "Events cannot be stored at the moment"), retryAfterSeconds: retryAfterFailureSeconds }
}

/** 400 only if every event has an error. Source: contract/analytics#collect. */
export const collected = (results: CollectAnswer["results"]): IngestAnswer => {
  const accepted = results.filter((result) => result.stored).length
  const answer: CollectAnswer = { accepted, results }
  return results.every((result) => result.error !== undefined)
    ? { status: 400, body: JSON.stringify({ error: "No event was accepted", ...answer }) }
    : { status: 202, body: JSON.stringify(answer) }
}
