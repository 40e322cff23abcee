import { Effect } from "effect"

/** A value that is at hand, as nearly always, or has to be waited for. */
export type Soon<A extends object> = A | Effect.Effect<A>

export const awaited = <A extends object>(soon: Soon<A>): Effect.Effect<A> =>
  Effect.isEffect(soon) ? soon : Effect.succeed(soon)
