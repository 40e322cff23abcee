import { Effect } from "effect"
import { nothingDrawn, type Settlement } from "#streams/llm/CallRecord.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import { upstreamFailure } from "./AttemptFailure.ts"
import * as CallFault from "./CallFault.ts"
import type { AnswerStream, Call, CallParts } from "./CallParts.ts"
import type { CallTally } from "./CallTally.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { usageObject, usageOf } from "./CountedUsage.ts"
import { GrowingHold } from "./GrowingHold.ts"
import { routerBlock } from "./RouterBlock.ts"
import { settle } from "./Settling.ts"
import { faultOf, type Tried, tryInOrder } from "./Stage.ts"
import { type Streamed, streamAttempt } from "./StreamAttempt.ts"

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
  bodyOf: (model: CatalogueModel) => OutgoingBody,
  images: number
): Effect.fn.Return<CallFault.CallFault | undefined> {
  const { log } = parts
  const { tally, target } = call
  const { stream } = outlet
  const result = yield* tryInOrder(target.primary, call.route, (model) =>
    askStream(parts, call, outlet, bodyOf(model))
  )
  if (result._tag === "ClientGone") {
    stream.dispose()
    return void log.append(tally.clientGone())
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

const askStream = (
  { limits, upstream }: CallParts,
  { admission, client, request, tally }: Call,
  outlet: Outlet,
  body: OutgoingBody
): Effect.Effect<Tried<Streamed>> => {
  tally.attempts++
  const isOpenEnded = request.maxTokens === undefined && !admission.clamped
  const hold = new GrowingHold(admission, isOpenEnded, limits.streamHoldTokens * request.choices)
  const { stream } = outlet
  const onCall = (call: { resume(): void }): void => {
    outlet.resume = () => call.resume()
  }
  return Effect.map(streamAttempt({ upstream, body, client, stream, hold, limits, onCall }), (outcome) =>
    outcome._tag === "Streamed"
      ? { _tag: "Done", value: outcome.streamed, health: healths[outcome.streamed.end] }
      : outcome
  )
}

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
    parts.log.append(tally.brokeOff("upstream_error"))
    call.sink.brokeOff()
    stream.end(errorChunk(streamed.first, fault) + summary(call, nothingDrawn, false))
    return
  }
  const usage = yield* usageOf(parts.counter, call.request, model, streamed.usage, () =>
    streamed.produced.text()
  )
  tally.add(model, usage, images)
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
  const isTruncated = isCut || (admission.clamped && finishReason === "length")
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
  chunk(streamed.first, [], { usage: usageObject(tally, streamed.usage) })

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
