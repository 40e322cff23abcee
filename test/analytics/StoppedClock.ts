import { Clock, Effect } from "effect"

/** Stops the wall clock at an instant. Timers go on: real stores are waited for. */
export const stoppedAt =
  (nowMillis: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.clockWith((clock) => {
      const stopped: Clock.Clock = Object.assign(Object.create(clock), {
        currentTimeMillis: Effect.succeed(nowMillis),
        currentTimeMillisUnsafe: () => nowMillis
      })
      return Effect.provideService(effect, Clock.Clock, stopped)
    })
