import { Effect, Fiber } from "effect"
import type { TimeoutError } from "effect/Cause"

/**
 * Fails after so long, or when it is interrupted, without waiting for the statement's end: on a connection that hangs
 * that takes seconds. So the statement may be carried out all the same, later; `onAbandon` is told of it.
 */
export const abandonedAfter = <A, E, R>(
  statement: Effect.Effect<A, E, R>,
  millis: number,
  onAbandon: () => void = () => undefined
): Effect.Effect<A, E | TimeoutError, R> =>
  Effect.flatMap(Effect.forkDetach(statement, { startImmediately: true }), (fiber) => {
    const abandon = Effect.suspend(() => {
      onAbandon()
      return Effect.forkDetach(Fiber.interrupt(fiber))
    })
    return Effect.timeout(
      Effect.onInterrupt(Fiber.join(fiber), () => abandon),
      millis
    )
  })
