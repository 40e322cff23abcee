import { Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import type { CallTally } from "./CallTally.ts"

/** The caller, as far as a line in the log names it. */
export interface ReportedAsk {
  readonly id: string
  /** the answer's X-Request-Id: the caller's own, where there is one */
  readonly requestId: string
  readonly key: Principal
  readonly request: { readonly model: string }
}

/** Characters of a name that a caller made up. */
const nameLengthMax = 200

/**
 * One line in the log for a call that failed or was slow. It never has the prompt, and an upstream's own words, which
 * may quote the prompt, only where they are about the platform's account.
 */
export const reportCall = (
  ask: ReportedAsk,
  tally: CallTally | undefined,
  fault: Problem | undefined,
  slowCallMillis: number
): Effect.Effect<void> => {
  const record = tally?.record
  if (!isReported(record, fault, slowCallMillis)) return Effect.void
  const isFailure = fault !== undefined || record?.success === false
  const status = fault?.status ?? record?.status ?? 0
  const code = fault?.code ?? record?.errorCode ?? ""
  return log(isFailure, status, code).pipe(
    Effect.annotateLogs({
      requestId: ask.requestId,
      callId: ask.id,
      userId: ask.key.ownerId,
      keyId: ask.key.keyId,
      model: ask.request.model.slice(0, nameLengthMax),
      member: record?.resolved ?? "",
      status,
      code,
      reason: tally?.reason || fault?.message || code,
      attempts: tally?.attempts ?? 0,
      ...(record === undefined ? {} : { millis: record.endedAt - record.startedAt }),
      ...(record === undefined || record.firstTokenMillis === null
        ? {}
        : { firstTokenMillis: record.firstTokenMillis })
    })
  )
}

/** It failed or was slow. */
export const isReported = (
  record: CallRecord | undefined,
  fault: Problem | undefined,
  slowCallMillis: number
): boolean =>
  fault !== undefined || (record !== undefined && (!record.success || millisOf(record) >= slowCallMillis))

/** A body from which no call was made. */
export const reportUnread = (requestId: string, { ownerId: userId }: Principal, fault: Problem) =>
  Effect.logInfo("A call was refused").pipe(
    Effect.annotateLogs({
      requestId,
      userId,
      status: fault.status,
      code: fault.code ?? "",
      reason: unreadReason(fault)
    })
  )

/** Not the message: a parser of JSON quotes the text that it could not read. */
const unreadReason = ({ param, type }: Problem): string =>
  param === null ? type : `${type} at ${param.slice(0, nameLengthMax)}`

const log = (isFailure: boolean, status: number, code: string): Effect.Effect<void> => {
  if (!isFailure) return Effect.logInfo("A call was slow")
  // Clients leave when they like.
  if (code === "client_gone") return Effect.logDebug("A call was left")
  // A status of 200: the answer broke off.
  return status >= 500 || status === 200
    ? Effect.logWarning("A call failed")
    : Effect.logInfo("A call failed")
}

/** A long answer is not slow: the time of its beginning counts. */
const millisOf = ({ endedAt, firstTokenMillis, startedAt, streamed }: CallRecord): number =>
  streamed && firstTokenMillis !== null ? firstTokenMillis : endedAt - startedAt
