import { Effect } from "effect"
import { chunkOf, textOf } from "#streams/llm/ChatChunk.ts"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import type { CallFault } from "./CallFault.ts"
import type { Call, CallParts } from "./CallParts.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { usageObject, usageOf } from "./CountedUsage.ts"
import { plainAttempt } from "./PlainAttempt.ts"
import { routerBlock } from "./RouterBlock.ts"
import { settle } from "./Settling.ts"
import { faultOf, type Tried, tryInOrder } from "./Stage.ts"

/** What is wrong with a completion that came whole. */
const problemOf = (json: JsonRecord): string | undefined => {
  const { error, hasContent } = chunkOf(json)
  // Some say that they failed only by the reason of the end.
  return error?.message ?? (hasContent ? undefined : "The model's answer was empty")
}

/** Asks one model for an answer in one piece. */
export const askPlain = (
  { limits, upstream }: CallParts,
  { client, tally }: Pick<Call, "client" | "tally">,
  body: OutgoingBody
): Effect.Effect<Tried<JsonRecord>> => {
  tally.attempts++
  return Effect.map(
    plainAttempt({ upstream, path: "/chat/completions", body, client, limits, problemOf }),
    (outcome) =>
      outcome._tag === "Answered" ? { _tag: "Done", value: outcome.json, health: "succeeded" } : outcome
  )
}

/** Adds a model's whole answer to the call. */
export const addAnswer = Effect.fnUntraced(function* (
  { counter }: CallParts,
  { request, tally }: Pick<Call, "request" | "tally">,
  model: CatalogueModel,
  json: JsonRecord,
  images: number
) {
  const usage = yield* usageOf(counter, request, model, json["usage"], () => ({
    text: textOf(json),
    factor: 1
  }))
  tally.add(model, usage, images)
})

/** The last stage of a plain call: the first model that answers is what the client gets. */
export const answerPlain = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Call,
  bodyOf: (model: CatalogueModel) => OutgoingBody,
  images: number
): Effect.fn.Return<CallFault | undefined> {
  const { admission, sink, tally, target } = call
  const result = yield* tryInOrder(target.primary, call.route, (model) =>
    askPlain(parts, call, bodyOf(model))
  )
  if (result._tag === "ClientGone") return void parts.log.append(tally.clientGone())
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
    ...json,
    id: typeof json["id"] === "string" ? json["id"] : tally.head.id,
    object: "chat.completion",
    model: model.id,
    usage: usageObject(tally, json["usage"]),
    router: routerBlock(call, settlement, admission.clamped && chunkOf(json).finishReason === "length")
  })
  return undefined
})
