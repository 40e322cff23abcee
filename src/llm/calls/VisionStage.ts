import { Effect } from "effect"
import { textOf } from "#streams/llm/ChatChunk.ts"
import type { Call, CallParts } from "./CallParts.ts"
import { addAnswer, askPlain } from "./PlainAnswer.ts"
import { tryInOrder } from "./Failover.ts"

/**
 * Asks the vision members, in order, to describe the images. Answers the text that stands for them, which in the worst
 * case tells why there is none; undefined when the client left. Source: contract/llm#vision.
 */
export const describeImages = Effect.fnUntraced(function* (parts: CallParts, call: Call) {
  const { request, route, tally, candidates } = call
  tally.stages.push("vision")
  const result = yield* tryInOrder(candidates.vision, route, (model) =>
    askPlain(
      parts,
      call,
      model,
      request.source.forVision(model.id, parts.limits.visionTokens),
      request.imageCount
    )
  )
  if (result._tag === "ClientGone") return undefined
  if (result._tag === "AllFailed") {
    const [first] = result.failures
    return `[The images could not be described: ${first?.message ?? "no model was asked"}]`
  }
  yield* addAnswer(parts, call, result.model, result.value, request.imageCount)
  return `[What the images show, as ${result.model.id} describes it]\n${textOf(result.value)}`
})
