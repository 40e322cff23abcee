import { Effect } from "effect"
import type { Health } from "#actors/llm/CollectionRoutes.ts"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import { usdOf } from "#schemas/llm/Money.ts"
import { nothingDrawn, type Settlement } from "#streams/llm/CallRecord.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import { upstreamFailure } from "./AttemptFailure.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import type { Call, CallParts, ChunkHead, LastStage } from "./CallParts.ts"
import type { AnswerStream } from "./ClientStream.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { traceAttempt } from "./CallTrace.ts"
import { usageObject, usageOf } from "./CountedUsage.ts"
import { GrowingHold } from "./Settling.ts"
import { mayThink } from "./Estimate.ts"
import { settleLeft } from "./PlainAnswer.ts"
import { routerBlock } from "./CallTally.ts"
import { settle } from "./Settling.ts"
import { addFailed, addLeft } from "./Spent.ts"
import { faultOf, healthAfter, type Tried, tryInOrder } from "./Failover.ts"
import { awaited } from "./Soon.ts"
import { streamAttempt } from "./StreamAttempt.ts"
import type { Streamed } from "./StreamOutcome.ts"

/** The client's side of a streamed call. */
export interface Outlet {
  readonly stream: AnswerStream
  /** lets the model go on, when the client has taken the waiting bytes */
  resume: () => void
}

/** From here on the client gets comments, in any stage of the call, if the first word takes long. */
export const outletOf = ({ sink }: Call): Outlet => {
  const outlet: Outlet = { stream: sink.stream(() => outlet.resume()), resume: () => undefined }
  return outlet
}

/** The last stage of a streamed call: the client gets the stream of the first model that has content. */
export const answerStream = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Call,
  outlet: Outlet,
  { bodyOf, images }: LastStage
): Effect.fn.Return<Problem | undefined> {
  const { log } = parts
  const { tally, candidates } = call
  const { stream } = outlet
  const result = yield* tryInOrder(candidates.primary, call.route, (model, isLast) =>
    askStream(parts, call, { outlet, model, body: bodyOf(model), images, isLast })
  )
  if (result._tag === "ClientGone") {
    stream.dispose()
    return void (yield* settleLeft(parts, call))
  }
  if (result._tag === "AllFailed") {
    const fault = faultOf(result.failures)
    log.append(tally.refused(fault))
    if (!stream.isOpen) {
      stream.dispose()
      return fault
    }
    call.sink.failedMidStream()
    stream.end(errorChunk(headOf(call), fault) + summary(call, undefined, nothingDrawn, false))
    return undefined
  }
  yield* finish(parts, call, stream, result.model, result.value, images)
  return undefined
})

interface StreamTry {
  readonly outlet: Outlet
  readonly model: CatalogueModel
  readonly body: OutgoingBody
  readonly images: number
  readonly isLast: boolean
}

const askStream = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Call,
  { body, images, isLast, model, outlet }: StreamTry
): Effect.fn.Return<Tried<Streamed>> {
  const { counter, limits, upstream } = parts
  const { admission, client, request, sink, tally } = call
  tally.attempts++
  const isOpenEnded = request.maxTokens === undefined && !admission.clamped
  const hold = new GrowingHold(admission, isOpenEnded, limits.streamHoldTokens * request.choices)
  const { stream } = outlet
  const attempt = streamAttempt({
    upstream,
    body,
    client,
    stream,
    hold,
    limits,
    choices: request.choices,
    // A failed try would be the last: a model that is slow to begin has its time.
    firstTokenMillis: isLast ? limits.lastFirstTokenMillis : limits.firstTokenMillis,
    thinks: mayThink(request, model),
    count: (text) => Effect.runPromise(counter.count(text)),
    onCall: (asked) => {
      outlet.resume = () => asked.resume()
    },
    onFirst: (first) => sink.began(headOf(call, { first }))
  })
  const outcome = yield* traceAttempt(parts, "chat", model, attempt)
  if (outcome._tag === "Streamed")
    return { _tag: "Done", value: outcome.streamed, health: healthOf(outcome.streamed) }
  if (outcome._tag === "ClientGone") yield* addLeft(parts, call, model, outcome.spent, images)
  else {
    tally.told(model, outcome.failure)
    addFailed(parts, call, model, outcome.spent, images)
  }
  return outcome
})

const healthOf = ({ end, failure }: Streamed): Health => {
  if (end === "failed") return failure === undefined ? "failed" : healthAfter(failure)
  return end === "gone" ? "moot" : "succeeded"
}

/** The sent part is settled, and the client gets the outcome. */
const finish = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Call,
  stream: AnswerStream,
  model: CatalogueModel,
  streamed: Streamed,
  images: number
) {
  const { admission, tally } = call
  tally.firstTokenAt(streamed.firstTokenAt)
  if (streamed.end === "failed") {
    tally.resolved = model.id
    // A try that failed costs the caller nothing, however much of it they have seen.
    const failure = streamed.failure ?? upstreamFailure("The model's answer broke off")
    const fault = faultOf([failure])
    tally.told(model, failure)
    addFailed(parts, call, model, streamed.spent, images)
    parts.log.append(tally.failedMidStream(fault.code ?? fault.type))
    call.sink.failedMidStream()
    stream.end(errorChunk(headOf(call, streamed), fault) + summary(call, streamed, nothingDrawn, false))
    return
  }
  if (streamed.end === "gone") yield* addLeft(parts, call, model, streamed.spent, images)
  else if (streamed.end === "cut") yield* addLeft(parts, call, model, streamed.spent, images, "cut")
  else {
    const { output, usage } = streamed.spent
    tally.add(model, yield* awaited(usageOf(parts, call.request, model, usage, output)), images)
  }
  const { client } = call
  if (client.isAbandoned) {
    stream.dispose()
    return parts.log.append(tally.failedMidStream(client.goneCode))
  }
  const settlement = yield* awaited(settle(admission, call.ask, { cost: tally.cost, tokens: tally.tokens }))
  if (streamed.end === "gone") {
    stream.dispose()
    return parts.log.append(tally.failedMidStream(client.goneCode, settlement))
  }
  parts.log.append(tally.answered(settlement))
  const { finishReason } = streamed.produced
  const isCut = streamed.end === "cut" && finishReason === undefined
  const isOpenEnded = call.request.maxTokens === undefined || admission.clamped
  const isTruncated = (isCut && isOpenEnded) || (admission.clamped && finishReason === "length")
  const head = headOf(call, streamed)
  stream.end(
    (isCut ? chunk(head, [{ index: 0, delta: {}, finish_reason: "length" }]) : "") +
      (call.request.includeUsage ? chunk(head, [], { usage: usageIn(call, streamed, settlement) }) : "") +
      summary(call, streamed, settlement, isTruncated)
  )
})

/** From the model's first chunk; fields that it lacks, or all without a chunk, are the call's own. */
export const headOf = (
  { request, tally }: Pick<Call, "request" | "tally">,
  streamed?: Pick<Streamed, "first">
): ChunkHead => {
  const { created, id, model } = streamed?.first ?? {}
  const { id: callId, startedAt } = tally.head
  return {
    id: typeof id === "string" && id !== "" ? id : callId,
    created: typeof created === "number" ? created : Math.trunc(startedAt / 1_000),
    model: typeof model === "string" && model !== "" ? model : tally.resolved || request.model
  }
}

type Fields = Readonly<Record<string, unknown>>

const chunk = (
  { created, id, model }: ChunkHead,
  choices: ReadonlyArray<unknown>,
  more: Fields = {}
): string =>
  `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created, model, choices, ...more })}\n\n`

/** The stream's usage, with the charge in place of the upstream's cost. */
const usageIn = ({ tally }: Call, streamed: Streamed | undefined, { charge }: Settlement): JsonRecord => ({
  ...usageObject(tally, streamed?.spent.usage),
  cost: usdOf(BigInt(charge))
})

/** Clients of this form read the code of an error as a number: the status. Source: contract/llm#streams. */
export const errorChunk = (head: ChunkHead, { code, message, param, status, type }: Problem): string =>
  chunk(head, [{ index: 0, delta: {}, finish_reason: "error" }], {
    error: { message, type: code ?? type, code: status, param }
  })

/**
 * A chunk for clients that do not know the summary, with an empty choice, because clients read the first. It has the
 * usage, unless a chunk before it has: some clients (LangChain) add up all usages.
 */
const summary = (
  call: Call,
  streamed: Streamed | undefined,
  settlement: Settlement,
  isTruncated: boolean
): string => {
  const isTold = call.request.includeUsage && streamed !== undefined && streamed.end !== "failed"
  const frame = chunk(headOf(call, streamed), [{ index: 0, delta: {}, finish_reason: null }], {
    ...(isTold ? {} : { usage: usageIn(call, streamed, settlement) }),
    type: "router.summary",
    router: routerBlock(call, settlement, isTruncated)
  })
  return `event: router.summary\n${frame}data: [DONE]\n\n`
}
