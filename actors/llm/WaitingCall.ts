/**
 * State: a call in line for credit that its limits do not leave right now, and the findings of one pass over the line.
 * Messages: none; CreditLease holds these. Limits: how many there are and how long they wait, see `LeaseOptions`.
 * Restart policy and crash: those in line when their actor ends are refused as busy.
 */
import type * as Effect from "effect/Effect"
import type { Choice, Hold } from "./Hold.ts"
import type { HoldRefused, LeaseAsk } from "./LeaseAsk.ts"
import type { LimitsAway } from "./LimitGrants.ts"

export type Refused = HoldRefused | LimitsAway

export interface Waiter {
  readonly ask: LeaseAsk
  /** the hold that is to be extended */
  readonly extends: Hold | undefined
  readonly untilMillis: number
  readonly resume: (result: Effect.Effect<Hold, Refused>) => void
  isGone: boolean
  /** until then other processes have the time to give back what they only lease, before another choice is tried */
  recallUntilMillis: number | undefined
}

/** The outcome of one choice; `held`: other calls' holds stand in the way. */
export type Outcome =
  | { readonly is: "taken"; readonly hold: Hold }
  | { readonly is: "short"; readonly limit: string }
  | {
      readonly is: "held"
      readonly limit: string
      /** some of it is leased by other processes, or on its way back from here */
      readonly elsewhere: boolean
      readonly choice: Choice
      readonly tokens: number | undefined
    }

/** The findings of one pass over the line. */
export interface Pass {
  /** limits for which an earlier call in line waits */
  readonly claimed: Set<string>
  /** the rest of a limit without holds, if a call has asked for more */
  readonly reaches: Map<string, bigint>
  /** the limits did not answer an earlier call in line */
  away: LimitsAway | undefined
}
