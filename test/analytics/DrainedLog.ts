import { Effect, Layer } from "effect"
import { EventDrain } from "#src/analytics/EventDrain.ts"

/** Nothing waits in a log: the tests write to the sink themselves. */
export const drained = Layer.succeed(EventDrain, {
  flush: Effect.void,
  stats: () => {
    throw new Error("not asked for here")
  }
})
