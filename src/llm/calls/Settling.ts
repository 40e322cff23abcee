import { Effect } from "effect"
import type { PicoUsd } from "#schemas/llm/Money.ts"
import type { Settlement } from "#streams/llm/CallRecord.ts"
import type { Admission, AdmissionAsk } from "#src/llm/ledger/Admission.ts"

/** Tokens over which the price of one more is taken. */
const sampleTokens = 1_000_000

/** Output tokens whose hold covers a cost; as many as before where more would not raise it. */
const tokensFor = (held: number, cost: PicoUsd, costOf: AdmissionAsk["costOf"]): number => {
  const missing = cost - costOf(held)
  const perSample = costOf(held + sampleTokens) - costOf(held)
  if (missing <= 0n || perSample <= 0n) return held
  return held + Number((missing * BigInt(sampleTokens)) / perSample) + 1
}

/**
 * Settles what a call has come to. Where that is more than was held, the rest is asked for first: only what cannot be had
 * is the platform's loss.
 */
export const settle = (
  admission: Admission,
  { costOf, promptTokens }: Pick<AdmissionAsk, "costOf" | "promptTokens">,
  actual: { readonly cost: PicoUsd; readonly tokens: number }
): Effect.Effect<Settlement> => {
  const held = admission.outputTokens
  const needed = admission.covered
    ? Math.max(held, actual.tokens - promptTokens)
    : tokensFor(held, actual.cost, costOf)
  return needed <= held
    ? Effect.sync(() => admission.settle(actual))
    : Effect.map(
        Effect.promise(() => admission.extend(needed)),
        () => admission.settle(actual)
      )
}
