import { Schema } from "effect"
import type { PicoUsd } from "#schemas/llm/Money.ts"
import type { Settlement } from "#streams/llm/CallRecord.ts"

/** A call's ask to the ledger, before it may begin. */
export interface AdmissionAsk {
  readonly userId: string
  readonly keyId: string
  readonly source: "api" | "agent"
  /** ids of the models that may answer: a plan covers the call only if it covers all of them */
  readonly models: ReadonlyArray<string>
  /** estimate, for allowances */
  readonly promptTokens: number
  /** output tokens that are wanted */
  readonly outputTokens: number
  /** fewer than these make no sense, and the call is refused */
  readonly outputTokensMin: number
  /** output tokens that the hold may be extended to; absent: it is the most that the call may cost, and stays */
  readonly growsTo?: number | undefined
  /** it has fees that no allowance of tokens covers */
  readonly hasFees?: boolean
  /** the most that a call with so many output tokens costs; 0 for a free model */
  readonly costOf: (outputTokens: number) => PicoUsd
}

/** A hold on credits or allowances. Exactly one of `settle` and `release` ends it; further calls do nothing. */
export interface Admission {
  readonly covered: boolean
  /** the output that the hold covers: at most the wanted one */
  readonly outputTokens: number
  /** the wanted output had to be cut because the balance, the key's cap or an allowance does not cover it */
  readonly clamped: boolean
  /**
   * Makes the hold cover so many output tokens in all (more than before); answers how many it covers now: as many as
   * before if nothing is left. Waits for the database if the lease in memory is too small.
   */
  readonly extend: (outputTokens: number) => Promise<number>
  /**
   * Ends the hold with the call's cost. Synchronous: the charge is out of reach for other calls from here on, and is
   * settled for good once the answered settlement is in the log of calls.
   */
  readonly settle: (actual: { readonly cost: PicoUsd; readonly tokens: number }) => Settlement
  /** Ends the hold without a charge. */
  readonly release: () => void
}

/**
 * Neither an allowance nor the credits cover the call. `busy`: other calls' holds stand in the way, and their unused
 * part comes back; the ledger has waited for it already.
 */
export class CreditsExhausted extends Schema.TaggedError<CreditsExhausted>()("CreditsExhausted", {
  busy: Schema.Boolean
}) {}

/** The key's limit is spent, or held by other calls of it. */
export class KeyLimitReached extends Schema.TaggedError<KeyLimitReached>()("KeyLimitReached", {
  busy: Schema.Boolean
}) {}

/** The database is away and this process's leases are not enough. */
export class LedgerAway extends Schema.TaggedError<LedgerAway>()("LedgerAway", {
  problem: Schema.String
}) {}

export type AdmissionRefused = CreditsExhausted | KeyLimitReached | LedgerAway
