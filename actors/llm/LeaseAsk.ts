import type { Choice, Hold } from "./Hold.ts"
import type { LimitsAway } from "./LimitGrants.ts"
import type * as Effect from "effect/Effect"

/** A call's wish to hold output tokens: between the fewest that make sense and those that are wanted. */
export interface LeaseAsk {
  /** in the order of preference */
  readonly choices: ReadonlyArray<Choice>
  /** output tokens */
  readonly tokens: number
  readonly tokensMin: number
}

export interface LeaseOptions {
  /** how long a call waits for what other calls hold */
  readonly waitMillis: number
  /** calls in line per user */
  readonly waiting: number
  /** the poll interval of a call in line, without a wakeup */
  readonly pollMillis: number
  /** after a recall by another process nothing is kept for so long */
  readonly scarceMillis: number
  /** a lease unused for this long is given back */
  readonly idleMillis: number
}

/** The reason why there is no hold. `busy`: the unused part of other calls' holds would suffice. */
export class HoldRefused {
  readonly _tag = "HoldRefused"
  /** the limit that was short, of the last choice */
  readonly limit: string
  readonly busy: boolean
  constructor(limit: string, busy: boolean) {
    this.limit = limit
    this.busy = busy
  }
}

/**
 * The most output tokens, up to those wanted, whose amount is at most `budget` above what is held already (`base`).
 * Undefined: not even the fewest that make sense. A budget of undefined has no end.
 */
export const affordable = (
  ask: LeaseAsk,
  choice: Choice,
  base: bigint,
  budget: bigint | undefined
): number | undefined => {
  const fits = (tokens: number): boolean => budget === undefined || choice.amountOf(tokens) - base <= budget
  if (fits(ask.tokens)) return ask.tokens
  if (!fits(ask.tokensMin)) return undefined
  let low = ask.tokensMin
  let high = ask.tokens
  while (high - low > 1) {
    const middle = low + Math.floor((high - low) / 2)
    if (fits(middle)) low = middle
    else high = middle
  }
  return low
}

export const least = (values: ReadonlyArray<bigint>): bigint | undefined =>
  values.reduce<bigint | undefined>(
    (min, value) => (min === undefined || value < min ? value : min),
    undefined
  )

/** The missing part of an amount. */
export const above = (amount: bigint, free: bigint): bigint => (amount > free ? amount - free : 0n)

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
