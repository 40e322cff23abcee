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
 * Settles what a call has come to. Where nothing bounded it beforehand, what is missing of the hold is asked for first;
 * what the hold does not cover then is the platform's loss. Nobody pays more than what was held.
 */
export const settle = (
  admission: Admission,
  ask: Pick<AdmissionAsk, "costOf" | "promptTokens" | "growsTo">,
  actual: Actual
): Effect.Effect<Settlement> => {
  const held = admission.outputTokens
  const needed = admission.covered
    ? Math.max(held, actual.tokens - ask.promptTokens)
    : tokensFor(held, actual.cost, ask.costOf)
  const most = admission.clamped ? held : Math.min(needed, ask.growsTo ?? held)
  if (most <= held) return Effect.sync(() => capped(admission, ask, held, actual))
  return Effect.map(
    Effect.promise(() => admission.extend(most)),
    (covers) => capped(admission, ask, covers, actual)
  )
}

interface Actual {
  readonly cost: PicoUsd
  readonly tokens: number
}

const capped = (
  admission: Admission,
  { costOf, promptTokens }: Pick<AdmissionAsk, "costOf" | "promptTokens">,
  outputTokens: number,
  { cost, tokens }: Actual
): Settlement => {
  const share = admission.covered
    ? tokens <= promptTokens + outputTokens
      ? cost
      : (cost * BigInt(promptTokens + outputTokens)) / BigInt(tokens)
    : least(cost, costOf(outputTokens))
  const settled = admission.settle({ cost: share, tokens: Math.min(tokens, promptTokens + outputTokens) })
  return { ...settled, loss: String(BigInt(settled.loss) + cost - share) }
}

const least = (a: PicoUsd, b: PicoUsd): PicoUsd => (a < b ? a : b)
