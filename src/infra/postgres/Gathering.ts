import { Array, Effect, Exit } from "effect"
import { TimeoutError } from "effect/Cause"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"

interface Asked<A, B, E> {
  readonly ask: A
  readonly answer: (exit: Exit.Exit<B, E | TimeoutError>) => void
  /** the answer is not waited for */
  isWithdrawn: boolean
}

/**
 * Carries several asks out and answers in their order. Where an ask that is withdrawn is not to be carried out, it fails at
 * its end unless all are wanted still.
 */
type Run<A, B, E> = (
  asks: Array.NonEmptyReadonlyArray<A>,
  areWanted: () => boolean
) => Effect.Effect<ReadonlyArray<B>, E>

/**
 * One statement for many: while `atOnce` are under way the asks gather for the next one, of `most` at a time. Where it fails for
 * several, each is asked alone, so that none fails for another's sake. An ask whose fiber is interrupted is withdrawn. It
 * takes no part in a transaction of the caller. Postgres has `millis` for a statement: the asks of one on a connection that
 * hangs fail with `TimeoutError` and count as withdrawn, though it may be carried out later; the others wait no longer.
 */
export const gathering = <A, B, E>(
  { atOnce = 1, millis, most }: { readonly most: number; readonly millis: number; readonly atOnce?: number },
  run: Run<A, B, E>
): Effect.Effect<(ask: A) => Effect.Effect<B, E | TimeoutError>> =>
  Effect.map(Effect.context<never>(), (context) => {
    const waiting: globalThis.Array<Asked<A, B, E>> = []
    const fork = Effect.runForkWith(context)
    let underWay = 0

    const runSome = (some: ReadonlyArray<Asked<A, B, E>>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const asked = some.filter(({ isWithdrawn }) => !isWithdrawn)
        if (!Array.isArrayNonEmpty(asked)) return Effect.void
        let isAbandoned = false
        const abandon = (): void => {
          isAbandoned = true
          for (const one of asked) one.isWithdrawn = true
        }
        const all = Effect.suspend(() =>
          run(
            Array.map(asked, ({ ask }) => ask),
            () => !asked.some(({ isWithdrawn }) => isWithdrawn)
          )
        )
        return Effect.flatMap(Effect.exit(abandonedAfter(Effect.exit(all), millis, abandon)), (ended) => {
          if (isAbandoned || Exit.isFailure(ended)) {
            const late = Exit.fail(new TimeoutError(`Postgres has not answered in ${millis} ms`))
            for (const { answer } of asked) answer(late)
            return Effect.void
          }
          const exit = ended.value
          if (Exit.isFailure(exit) && asked.length > 1)
            return Effect.forEach(asked, (one) => runSome([one]), { discard: true })
          for (const [index, { answer }] of asked.entries())
            answer(Exit.map(exit, (answers) => answers[index] as B))
          return Effect.void
        })
      })

    const runWaiting = Effect.gen(function* () {
      while (waiting.length > 0) yield* runSome(waiting.splice(0, most))
      underWay--
    })

    return (ask) =>
      Effect.callback<B, E | TimeoutError>((resume) => {
        const asked: Asked<A, B, E> = { ask, answer: resume, isWithdrawn: false }
        waiting.push(asked)
        if (underWay < atOnce) {
          underWay++
          fork(Effect.andThen(Effect.yieldNow, runWaiting))
        }
        return Effect.sync(() => (asked.isWithdrawn = true))
      })
  })
