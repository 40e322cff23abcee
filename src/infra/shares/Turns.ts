import { Effect, Semaphore } from "effect"

interface TurnsOptions<E> {
  /** those that run; others wait … */
  readonly atOnce: number
  /** … so many together with those, further ones fail … */
  readonly underWay: number
  /** … and so does one that takes longer, its waiting included */
  readonly millis: number
  readonly busy: E
}

/** Lets some run at once, and others wait for them, as many and as long as is said. */
export const makeTurns = <Busy>({ atOnce, busy, millis, underWay }: TurnsOptions<Busy>) =>
  Effect.map(Semaphore.make(atOnce), (semaphore) => {
    let count = 0
    return <A, E, R>(turn: Effect.Effect<A, E, R>): Effect.Effect<A, E | Busy, R> =>
      Effect.suspend((): Effect.Effect<A, E | Busy, R> => {
        if (count >= underWay) return Effect.fail(busy)
        count++
        return turn.pipe(
          semaphore.withPermits(1),
          Effect.timeoutOrElse({ duration: millis, orElse: () => Effect.fail(busy) }),
          Effect.ensuring(Effect.sync(() => count--))
        )
      })
  })
