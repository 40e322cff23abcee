import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The limits cannot be asked. */
export class LimitsAway extends Schema.TaggedError<LimitsAway>()("LimitsAway", { problem: Schema.String }) {}

/** The request to one limit. Amounts are pico-USD, or tokens of an allowance. */
export interface GrantAsk {
  readonly limit: string
  /** without this much nothing is granted, of no limit of the vector */
  readonly need: bigint
  /** for the call at hand */
  readonly want: bigint
  /** on top, where there is plenty */
  readonly more: bigint
}

export interface GrantAnswer {
  readonly limit: string
  /** epoch milliseconds of the window, on the limits' own clock; 0 for limits without windows */
  readonly windowStart: number
  /** milliseconds until the window ends, counted from when it was asked; Infinity without windows */
  readonly endsInMillis: number
  /** leased by this: now in the asker's hands, whether the need was met or not */
  readonly granted: bigint
  /** the rest of the limit after this; undefined: it has no cap */
  readonly available: bigint | undefined
  /** leased by other processes: held by their calls, or idle there until recalled */
  readonly others: bigint
  /** on its way back from here */
  readonly returning: bigint
}

export interface LimitsListener {
  /** another process wants what is not held of this user's limits */
  readonly recalled: (userId: string) => void
  /** another process has given back some of them */
  readonly returned: (userId: string) => void
}

/**
 * The limits of all users, shared by all processes (Postgres). A giving back is retried until it has arrived; the leases
 * of a process that died are given back at its next start, or by others.
 */
export class LimitGrants extends Context.Service<
  LimitGrants,
  {
    /** Leases of each limit at least its need, or of none of them anything. Asks of different users may overlap. */
    grant(asks: ReadonlyArray<GrantAsk>): Effect.Effect<ReadonlyArray<GrantAnswer>, LimitsAway>
    /** Takes back granted amounts, at some later time; processes that wait for this user's are then notified. */
    giveBack(limit: string, windowStart: number, amount: bigint, tellUser?: string): void
    /** Rises when others have given up all that this process had leased. Undefined: it cannot be sure of its leases. */
    readonly epoch: () => number | undefined
    /** Asks other processes to give back what their calls do not hold of this user's limits. */
    readonly recall: (userId: string) => Effect.Effect<void, LimitsAway>
    /** Hears of other processes from now on. */
    readonly listen: (listener: LimitsListener) => void
  }
>()("signalbox/llm/LimitGrants") {}
