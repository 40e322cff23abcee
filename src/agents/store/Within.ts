import { Effect, Fiber } from "effect"
import type { TimeoutError } from "effect/Cause"

/**
 * Fails after so long without waiting for the statement to end, which takes seconds on a connection that hangs. The
 * statement may thus be carried out later all the same.
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
