import { Effect } from "effect"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import type { Call, CallParts } from "./CallParts.ts"
import { believed, countedUsage, type Output, tokensOnly } from "./CountedUsage.ts"
import { mayThink, promptTokensOf } from "./Estimate.ts"
import { estimateTokens } from "./TokenCounter.ts"

/** A model's usage by a try that led to no answer. */
export interface Spent {
  /** the usage object as the upstream sent it, if it did */
  readonly usage: unknown
  readonly output: () => Output
  /** milliseconds for which the model may have been at work without visible output; 0: it never was */
  readonly unseenMillis: number
  /** it may have been billed: the upstream has taken the request and has not refused it */
  readonly isTaken: boolean
}

export const nothingSpent: Spent = {
  usage: undefined,
  output: () => ({ text: "", factor: 1 }),
  unseenMillis: 0,
  isTaken: false
}

type Asked = Pick<Call, "request" | "tally">

/**
 * A client left, or the call was ended here: its usage is charged as known or estimated. Source: contract/llm#streams.
 */
export const addLeft = Effect.fnUntraced(function* (
  parts: CallParts,
  { request, tally }: Asked,
  model: CatalogueModel,
  spent: Spent,
  images: number,
  doubt: "abandoned" | "cut" = "abandoned"
) {
  if (!spent.isTaken) return
  const { limits } = parts
  const told = believed(limits, request, model, spent.usage, spent.output)
  if ("usage" in told) return tally.add(model, told, images)
  const counted = yield* countedUsage(parts.counter, request, spent.output())
  const isHidden = !request.stream || mayThink(request, model)
  const unseen = isHidden ? Math.ceil((spent.unseenMillis / 1_000) * limits.hiddenTokensPerSecond) : 0
  const most = request.maxTokens === undefined ? Infinity : request.maxTokens * request.choices
  const completion = Math.min(counted.completionTokens + unseen, Math.max(most, counted.completionTokens))
  tally.add(model, { usage: tokensOnly(counted.promptTokens, completion), doubt }, images)
})

/** A failed try's cost is the platform's loss. Without the upstream's usage it is estimated: no count is waited for. */
export const addFailed = (
  { limits }: CallParts,
  { request, tally }: Asked,
  model: CatalogueModel,
  spent: Spent,
  images: number
): void => {
  const told = believed(limits, request, model, spent.usage, spent.output)
  if ("usage" in told) return tally.failed(model, told, images)
  if (!spent.isTaken) return
  const { factor, text } = spent.output()
  const prompt = Math.min(estimateTokens(request.textBytes), promptTokensOf(request, images, model, limits))
  const completion = Math.ceil(estimateTokens(Buffer.byteLength(text)) * factor)
  tally.failed(model, { usage: tokensOnly(prompt, completion), doubt: "failed_try" }, images)
}
