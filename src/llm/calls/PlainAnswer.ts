import { Effect } from "effect"
import { chunkOf, textOf } from "#streams/llm/ChatChunk.ts"
import { withoutCosts } from "#streams/llm/UpstreamUsage.ts"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import type { Call, CallParts } from "./CallParts.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { traceAttempt } from "./CallTrace.ts"
import { usageObject, usageOf } from "./CountedUsage.ts"
import { plainAttempt } from "./PlainAttempt.ts"
import { routerBlock } from "./CallTally.ts"
import { settle } from "./Settling.ts"
import { addFailed, addLeft } from "./Spent.ts"
import { faultOf, type Tried, tryInOrder } from "./Failover.ts"

/** The fault of a completion that came whole. */
const problemOf = (json: JsonRecord): string | undefined => {
  const { finishReason, hasContent } = chunkOf(json)
  // A finish reason alone makes an empty answer valid.
  return hasContent || finishReason !== undefined ? undefined : "The model's answer was empty"
}

/** Asks one model for an answer in one piece. */
export const askPlain = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Pick<Call, "client" | "request" | "tally">,
  model: CatalogueModel,
  body: OutgoingBody,
  images: number
): Effect.fn.Return<Tried<JsonRecord>> {
  const { limits, upstream } = parts
  call.tally.attempts++
  const { client } = call
  const attempt = plainAttempt({ upstream, path: "/chat/completions", body, client, limits, problemOf })
  const outcome = yield* traceAttempt(parts, "chat", model, attempt)
  if (outcome._tag === "Answered") return { _tag: "Done", value: outcome.json, health: "succeeded" }
  if (outcome._tag === "ClientGone") yield* addLeft(parts, call, model, outcome.spent, images)
  else {
    call.tally.told(model, outcome.failure)
    addFailed(parts, call, model, outcome.spent, images)
  }
  return outcome
})

/** Settles a call whose client left before there was an answer. */
export const settleLeft = Effect.fnUntraced(function* ({ log }: CallParts, call: Call) {
  const { admission, ask, client, tally } = call
  // It went because this platform ended it: then the platform pays.
  if (client.isForsaken) return log.append(tally.clientGone())
  log.append(tally.clientGone(yield* settle(admission, ask, { cost: tally.cost, tokens: tally.tokens })))
})

/** Adds a model's whole answer to the call. */
export const addAnswer = Effect.fnUntraced(function* (
  parts: CallParts,
  { request, tally }: Pick<Call, "request" | "tally">,
  model: CatalogueModel,
  json: JsonRecord,
  images: number
) {
  const measured = yield* usageOf(parts, request, model, json["usage"], () => ({
    text: textOf(json),
    factor: 1
  }))
  tally.add(model, measured, images)
})

/** The last stage of a plain call: the client gets the answer of the first model that has one. */
export const answerPlain = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Call,
  bodyOf: (model: CatalogueModel) => OutgoingBody,
  images: number
): Effect.fn.Return<Problem | undefined> {
  const { admission, sink, tally, candidates } = call
  const result = yield* tryInOrder(candidates.primary, call.route, (model) =>
    askPlain(parts, call, model, bodyOf(model), images)
  )
  if (result._tag === "ClientGone") return void (yield* settleLeft(parts, call))
  if (result._tag === "AllFailed") {
    const fault = faultOf(result.failures)
    parts.log.append(tally.refused(fault))
    return fault
  }
  const { model, value: json } = result
  yield* addAnswer(parts, call, model, json, images)
  const settlement = yield* settle(admission, call.ask, { cost: tally.cost, tokens: tally.tokens })
  parts.log.append(tally.answered(settlement))
  sink.json({
    ...withoutCosts(json),
    id: typeof json["id"] === "string" ? json["id"] : tally.head.id,
    object: "chat.completion",
    model: model.id,
    usage: usageObject(tally, json["usage"]),
    router: routerBlock(call, settlement, admission.clamped && chunkOf(json).finishReason === "length")
  })
  return undefined
})
