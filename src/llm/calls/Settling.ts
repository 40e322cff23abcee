import { Effect } from "effect"
import type { PicoUsd } from "#schemas/llm/Money.ts"
import type { Settlement } from "#streams/llm/CallRecord.ts"
import type { Admission, AdmissionAsk, AdmissionRefused } from "#src/llm/ledger/Admission.ts"
import type { CallLog } from "#src/llm/usage/CallLog.ts"
import type { CallTally } from "./CallTally.ts"
import type { Ledger } from "#src/llm/ledger/Ledger.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import * as CallFault from "./CallFault.ts"
import type { Soon } from "./Soon.ts"

const faultOf = (refused: AdmissionRefused): Problem => {
  switch (refused._tag) {
    case "CreditsExhausted":
      return CallFault.insufficientCredits(refused.busy)
    case "KeyLimitReached":
      return CallFault.keySpendLimit(refused.busy)
    case "LedgerAway":
      return CallFault.overloaded("The ledger is away; nothing was charged, try again")
  }
}

/**
 * Makes a call under a hold, which is given back in any case unless the call settles it. A call that the ledger refuses
 * counts as one that failed.
 */
export const admittedCall = (
  ledger: Ledger["Service"],
  log: CallLog["Service"],
  tally: CallTally,
  ask: AdmissionAsk,
  make: (admission: Admission) => Effect.Effect<Problem | undefined>
): Effect.Effect<Problem | undefined> => {
  const under = (admission: Admission) =>
    Effect.ensuring(
      make(admission),
      Effect.sync(() => admission.release())
    )
  // The hot path: memory knows that the call is covered.
  const admission = ledger.admitNow(ask)
  if (admission !== undefined) return under(admission)
  return ledger.admit(ask).pipe(
    Effect.map(under),
    Effect.catch((refused) =>
      Effect.sync(() => {
        const fault = faultOf(refused)
        log.append(tally.refused(fault))
        return Effect.succeed(fault)
      })
    ),
    Effect.flatten
  )
}

/**
 * Keeps the hold of a stream ahead of its output, if its length is not known beforehand. A hold that covers the longest
 * stream never grows, and an upstream that goes on beyond it is cut off.
 */
export class GrowingHold {
  readonly #admission: Admission
  readonly #stepTokens: number
  readonly #isOpenEnded: boolean
  #covered: number
  #isGrowing = false
  #isExhausted = false

  constructor(admission: Admission, isOpenEnded: boolean, stepTokens: number) {
    this.#admission = admission
    this.#isOpenEnded = isOpenEnded
    this.#stepTokens = stepTokens
    this.#covered = admission.outputTokens
  }

  get isFixed(): boolean {
    return !this.#isOpenEnded
  }

  /** output tokens that are paid */
  get covered(): number {
    return this.#covered
  }

  /**
   * Whether so many tokens are more than can be paid. Asked at every piece: with half a step left more is asked for,
   * and the stream goes on meanwhile.
   */
  isUsedUp(tokens: number): boolean {
    if (this.isFixed) return tokens >= this.#covered + slackOf(this.#covered)
    if (this.#isExhausted) return tokens >= this.#covered
    if (!this.#isGrowing && tokens > this.#covered - this.#stepTokens / 2) void this.#grow(tokens)
    return false
  }

  async #grow(tokens: number): Promise<void> {
    this.#isGrowing = true
    const wanted = Math.max(tokens, this.#covered) + this.#stepTokens
    const covered = await this.#admission.extend(wanted)
    this.#isGrowing = false
    this.#isExhausted = covered < wanted
    this.#covered = covered
  }
}

/** The model may count a text in another way than this platform. */
const slackOf = (covered: number): number => Math.max(16, Math.ceil(covered / 4))

/** Tokens over which the price of one more is taken. */
const sampleTokens = 1_000_000

/** Output tokens whose hold covers a cost; as many as before if more would not raise it. */
const tokensFor = (held: number, cost: PicoUsd, costOf: AdmissionAsk["costOf"]): number => {
  const missing = cost - costOf(held)
  const perSample = costOf(held + sampleTokens) - costOf(held)
  if (missing <= 0n || perSample <= 0n) return held
  return held + Number((missing * BigInt(sampleTokens)) / perSample) + 1
}

/**
 * Settles a call's cost. If nothing bounded it beforehand, the rest of the hold is asked for first; the cost beyond the
 * hold is the platform's loss. A caller never pays more than the hold.
 */
export const settle = (
  admission: Admission,
  ask: Pick<AdmissionAsk, "costOf" | "promptTokens" | "growsTo">,
  actual: Actual
): Soon<Settlement> => {
  const held = admission.outputTokens
  const needed = admission.covered
    ? Math.max(held, actual.tokens - ask.promptTokens)
    : tokensFor(held, actual.cost, ask.costOf)
  const most = admission.clamped ? held : Math.min(needed, ask.growsTo ?? held)
  if (most <= held) return capped(admission, ask, held, actual)
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
