import { Effect, Exit } from "effect"

interface Asked<A, B, E> {
  readonly ask: A
  readonly answer: (exit: Exit.Exit<B, E>) => void
}

/**
 * One statement for many: while one is under way the asks gather for the next one, of `most` at a time. `run` answers in
 * their order. Where it fails for several, each is asked alone, so that none fails for another's sake. An ask that is
 * interrupted may be carried out nevertheless. It takes no part in a transaction of the caller.
 */
export const gathering = <A, B, E>(
  most: number,
  run: (asks: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, E>
): Effect.Effect<(ask: A) => Effect.Effect<B, E>> =>
  Effect.map(Effect.context<never>(), (context) => {
    const waiting: Array<Asked<A, B, E>> = []
    const fork = Effect.runForkWith(context)
    let isUnderWay = false

    const runAlone = ({ answer, ask }: Asked<A, B, E>): Effect.Effect<void> =>
      Effect.map(Effect.exit(run([ask])), (exit) => answer(Exit.map(exit, ([one]) => one as B)))

    const runAll = (asked: ReadonlyArray<Asked<A, B, E>>): Effect.Effect<void> =>
      Effect.flatMap(Effect.exit(run(asked.map(({ ask }) => ask))), (exit) => {
        if (Exit.isSuccess(exit))
          return Effect.sync(() => {
            for (const [index, { answer }] of asked.entries()) answer(Exit.succeed(exit.value[index] as B))
          })
        const [only] = asked
        return only !== undefined && asked.length === 1
          ? Effect.sync(() => only.answer(Exit.map(exit, ([one]) => one as B)))
          : Effect.forEach(asked, runAlone, { discard: true })
      })

    const runWaiting = Effect.gen(function* () {
      while (waiting.length > 0) yield* runAll(waiting.splice(0, most))
      isUnderWay = false
    })

    return (ask) =>
      Effect.callback<B, E>((resume) => {
        waiting.push({ ask, answer: resume })
        if (isUnderWay) return
        isUnderWay = true
        fork(Effect.andThen(Effect.yieldNow, runWaiting))
      })
  })
