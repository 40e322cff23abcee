import { Effect, Scope } from "effect"

/** A process that has been started and answers. */
export interface Running {
  /** resolves with how it ended, in words; never rejects */
  readonly exited: Promise<string>
  /** ends it in good order, by force after a deadline */
  readonly stop: Effect.Effect<void>
}

interface KeepRunningOptions<E> {
  /** its name in logs */
  readonly name: string
  readonly start: Effect.Effect<Running, E>
  /** pause before the next start, doubled with every failure up to `maxMillis`, back to `minMillis` once it ran that long */
  readonly minMillis: number
  readonly maxMillis: number
}

/** The number of restarts of the process. */
export interface Supervised {
  readonly restarts: () => number
  readonly isRunning: () => boolean
}

/**
 * Starts a process and starts it again whenever it ends, until the scope closes, which stops it. Only the first start
 * can fail the effect: later ones are tried for ever, because a store that is away is a state, not an end.
 */
export const keepRunning = Effect.fnUntraced(function* <E extends { readonly message: string }>(
  options: KeepRunningOptions<E>
): Effect.fn.Return<Supervised, E, Scope.Scope> {
  let restarts = 0
  let current: Running | undefined = yield* Effect.uninterruptible(options.start)
  yield* Effect.addFinalizer(() => Effect.suspend(() => current?.stop ?? Effect.void))

  const startAgain = Effect.gen(function* () {
    restarts++
    current = yield* Effect.uninterruptible(options.start)
    yield* Effect.logInfo(`${options.name} runs again`)
  }).pipe(
    Effect.as(true),
    Effect.catch((error: E) =>
      Effect.as(Effect.logWarning(`${options.name} does not start: ${error.message}`), false)
    )
  )

  const watch = Effect.gen(function* () {
    let pauseMillis = options.minMillis
    while (true) {
      const running: Running | undefined = current
      if (running !== undefined) {
        const since = performance.now()
        const end = yield* Effect.promise(() => running.exited)
        current = undefined
        if (performance.now() - since > options.maxMillis) pauseMillis = options.minMillis
        yield* Effect.logWarning(`${options.name} ended (${end}); starting it again in ${pauseMillis} ms`)
      }
      yield* Effect.sleep(pauseMillis)
      pauseMillis = Math.min(pauseMillis * 2, options.maxMillis)
      yield* startAgain
    }
  })
  // Forked last, so that closing the scope ends the watching before it stops the process.
  yield* Effect.forkScoped(watch)
  return { restarts: () => restarts, isRunning: () => current !== undefined }
})
