import { Effect, Fiber } from "effect"
import type { TimeoutError } from "effect/Cause"

/**
 * Fails after so long, and does not wait for the statement to end: on a connection that hangs that takes seconds. So it
 * may be carried out all the same, later.
 */
export const within = <A, E, R>(
  statement: Effect.Effect<A, E, R>,
  millis: number
): Effect.Effect<A, E | TimeoutError, R> =>
  Effect.flatMap(Effect.forkDetach(statement, { startImmediately: true }), (fiber) =>
    Effect.timeout(
      Effect.onInterrupt(Fiber.join(fiber), () => Effect.forkDetach(Fiber.interrupt(fiber))),
      millis
    )
  )
