import { Effect, Layer } from "effect"
import { EventDrain } from "#src/analytics/store/EventDrain.ts"

const notAskedFor = (): never => {
  throw new Error("not asked for here")
}

/** Nothing waits in a log: the tests write to the sink themselves. */
export const drained = Layer.succeed(EventDrain, {
  flush: () => Effect.void,
  freshen: () => Effect.void,
  stats: notAskedFor
})
