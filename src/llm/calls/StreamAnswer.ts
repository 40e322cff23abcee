import { Effect } from "effect"
import { nothingDrawn, type Settlement } from "#streams/llm/CallRecord.ts"
import { upstreamFailure } from "./AttemptFailure.ts"
import * as CallFault from "./CallFault.ts"
import type { AnswerStream, Call, CallParts } from "./CallParts.ts"
import type { CallTally } from "./CallTally.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { usageObject, usageOf } from "./CountedUsage.ts"
import { GrowingHold } from "./GrowingHold.ts"
import { mayThink } from "./Estimate.ts"
import { settleLeft } from "./PlainAnswer.ts"
import { routerBlock } from "./RouterBlock.ts"
import { settle } from "./Settling.ts"
import { addFailed, addLeft } from "./Spent.ts"
import { faultOf, type Tried, tryInOrder } from "./Stage.ts"
import { streamAttempt } from "./StreamAttempt.ts"
import type { Streamed } from "./StreamOutcome.ts"

/** The client's side of a streamed call. */
export interface Outlet {
  readonly stream: AnswerStream
  /** lets the model go on, when the client has taken what there was */
  resume: () => void
}

/** From here on the client hears comments, in whatever stage the call is, once the first word takes long. */
export const outletOf = ({ sink }: Call): Outlet => {
  const outlet: Outlet = { stream: sink.stream(() => outlet.resume()), resume: () => undefined }
  return outlet
}

/** The last stage of a streamed call: the first model that says something is what the client hears. */
export const answerStream = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Call,
  outlet: Outlet,
  bodyOf: (model: CatalogueModel) => string,
  images: number
): Effect.fn.Return<CallFault.CallFault | undefined> {
  const { log } = parts
  const { tally, target } = call
  const { stream } = outlet
  const result = yield* tryInOrder(target.primary, call.route, (model) =>
    askStream(parts, call, outlet, model, bodyOf(model), images)
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
    call.sink.brokeOff()
    stream.end(
      errorChunk({ id: tally.head.id, model: call.request.model }, fault) + summary(call, nothingDrawn, false)
    )
    return undefined
  }
  yield* finish(parts, call, stream, result.model, result.value, images)
  return undefined
})

const askStream = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Call,
  outlet: Outlet,
  model: CatalogueModel,
  body: string,
  images: number
): Effect.fn.Return<Tried<Streamed>> {
  const { counter, limits, upstream } = parts
  const { admission, client, request, tally } = call
  tally.attempts++
  const isOpenEnded = request.maxTokens === undefined && !admission.clamped
  const hold = new GrowingHold(admission, isOpenEnded, limits.streamHoldTokens * request.choices)
  const { stream } = outlet
  const onCall = (upstreamCall: { resume(): void }): void => {
    outlet.resume = () => upstreamCall.resume()
  }
  const thinks = mayThink(request, model)
  const outcome = yield* streamAttempt({
    upstream,
    body,
    client,
    stream,
    hold,
    limits,
    onCall,
    thinks,
    count: (text) => Effect.runPromise(counter.count(text))
  })
  if (outcome._tag === "Streamed")
    return { _tag: "Done", value: outcome.streamed, health: healths[outcome.streamed.end] }
  if (outcome._tag === "ClientGone") yield* addLeft(parts, call, model, outcome.spent, images)
  else addFailed(parts, call, model, outcome.spent, images)
  return outcome
})

const healths = { finished: "succeeded", cut: "succeeded", gone: "moot", failed: "failed" } as const

/** What was shown is settled, and the client is told what came of it. */
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
    const { message } = streamed.failure ?? upstreamFailure("The model's answer broke off")
    const fault = CallFault.upstreamError(message)
    addFailed(parts, call, model, streamed.spent, images)
    parts.log.append(tally.brokeOff("upstream_error"))
    call.sink.brokeOff()
    stream.end(errorChunk(streamed.first, fault) + summary(call, nothingDrawn, false))
    return
  }
  if (streamed.end === "gone") yield* addLeft(parts, call, model, streamed.spent, images)
  else if (streamed.end === "cut") yield* addLeft(parts, call, model, streamed.spent, images, "cut")
  else {
    const { output, usage } = streamed.spent
    tally.add(model, yield* usageOf(parts, call.request, model, usage, output), images)
  }
  if (call.client.isForsaken) {
    stream.dispose()
    return parts.log.append(tally.brokeOff("client_gone"))
  }
  const settlement = yield* settle(admission, call.ask, { cost: tally.cost, tokens: tally.tokens })
  if (streamed.end === "gone") {
    stream.dispose()
    return parts.log.append(tally.brokeOff("client_gone", settlement))
  }
  parts.log.append(tally.answered(settlement))
  const { finishReason } = streamed.produced
  const isCut = streamed.end === "cut" && finishReason === undefined
  const isOpenEnded = call.request.maxTokens === undefined || admission.clamped
  const isTruncated = (isCut && isOpenEnded) || (admission.clamped && finishReason === "length")
  stream.end(
    (isCut ? chunk(streamed.first, [{ index: 0, delta: {}, finish_reason: "length" }]) : "") +
      (call.request.includeUsage ? usageChunk(streamed, tally) : "") +
      summary(call, settlement, isTruncated)
  )
})

/** What the chunks of one stream have in common. */
interface ChunkHead {
  readonly id?: unknown
  readonly created?: unknown
  readonly model?: unknown
}

const event = (body: unknown): string => `data: ${JSON.stringify(body)}\n\n`

const chunk = (
  { created, id, model }: ChunkHead,
  choices: ReadonlyArray<unknown>,
  more: Readonly<Record<string, unknown>> = {}
): string =>
  event({
    id,
    object: "chat.completion.chunk",
    created: created ?? Math.trunc(Date.now() / 1_000),
    model,
    choices,
    ...more
  })

const usageChunk = (streamed: Streamed, tally: CallTally): string =>
  chunk(streamed.first, [], { usage: usageObject(tally, streamed.spent.usage) })

export const errorChunk = (head: ChunkHead, fault: CallFault.CallFault): string =>
  chunk(head, [{ index: 0, delta: {}, finish_reason: "error" }], CallFault.envelopeOf(fault))

/** With a choice that says nothing, because clients read the first choice of every chunk. */
const summary = (call: Call, settlement: Settlement, isTruncated: boolean): string =>
  event({
    id: call.tally.head.id,
    object: "router.summary",
    choices: [{ index: 0, delta: {}, finish_reason: null }],
    router: routerBlock(call, settlement, isTruncated)
  }) + "data: [DONE]\n\n"
