import { Effect } from "effect"
import type { Limits } from "#src/Limits.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import type { UpstreamCall, Upstream } from "#src/infra/upstream/Upstream.ts"
import { parseRecord, statusIn } from "#streams/llm/ChatChunk.ts"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import { type AttemptFailure, failureOf, upstreamFailure } from "./AttemptFailure.ts"
import type { Client } from "./Client.ts"

export type PlainOutcome =
  | { readonly _tag: "Answered"; readonly json: JsonRecord }
  | { readonly _tag: "Failed"; readonly failure: AttemptFailure }
  | { readonly _tag: "ClientGone" }

export interface PlainAsk {
  readonly upstream: Upstream["Service"]
  readonly path: string
  readonly body: OutgoingBody
  readonly client: Client
  readonly limits: Limits
  /** what is wrong with an answer that is JSON; undefined for a good one */
  readonly problemOf: (json: JsonRecord) => string | undefined
}

/** One try of one model for an answer in one piece. A client that goes away ends the call to the upstream. */
export const plainAttempt = ({
  body,
  client,
  limits,
  path,
  problemOf,
  upstream
}: PlainAsk): Effect.Effect<PlainOutcome> =>
  Effect.callback((resume) => {
    if (client.isGone) return resume(Effect.succeed({ _tag: "ClientGone" }))
    const pieces: Array<Buffer> = []
    let bytes = 0
    let status = 0
    let retryAfter: string | undefined
    const end = (outcome: PlainOutcome): void => {
      clearTimeout(deadline)
      stopListening()
      call.abort()
      resume(Effect.succeed(outcome))
    }
    const fail = (problem: string) => end({ _tag: "Failed", failure: upstreamFailure(problem) })
    const stopListening = client.onGone(() => end({ _tag: "ClientGone" }))
    const deadline = setTimeout(
      () => fail(`The model did not answer within ${limits.plainAnswerMillis / 1_000} s`),
      limits.plainAnswerMillis
    )
    const call: UpstreamCall = upstream.post(path, body, {
      head: (answered, header) => {
        status = answered
        retryAfter = header("retry-after")
      },
      data: (piece) => {
        bytes += piece.length
        if (bytes > limits.upstreamAnswerBytes)
          return fail(`The model answered more than ${limits.upstreamAnswerBytes} bytes`)
        pieces.push(piece)
      },
      ended: () => end(outcomeOf(status, textOf(pieces), retryAfter, problemOf)),
      failed: () => fail("The connection to the model broke")
    })
    return Effect.sync(() => {
      clearTimeout(deadline)
      stopListening()
      call.abort()
    })
  })

const textOf = (pieces: ReadonlyArray<Buffer>): string =>
  (pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)).toString("utf8")

const outcomeOf = (
  status: number,
  text: string,
  retryAfter: string | undefined,
  problemOf: PlainAsk["problemOf"]
): PlainOutcome => {
  if (status !== 200) return { _tag: "Failed", failure: failureOf(status, text, retryAfter) }
  const json = parseRecord(text)
  if (json === undefined)
    return { _tag: "Failed", failure: upstreamFailure("The model's answer was cut or is no JSON") }
  // Some upstreams answer 200 with an error in it.
  const error = json["error"]
  if (error !== undefined && error !== null)
    return { _tag: "Failed", failure: failureOf(statusIn(error) ?? 502, text, retryAfter) }
  const problem = problemOf(json)
  return problem === undefined
    ? { _tag: "Answered", json }
    : { _tag: "Failed", failure: upstreamFailure(problem) }
}
