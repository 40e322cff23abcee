import { Effect } from "effect"

/** How long a test waits for a condition before it counts as never true. */
const patienceMillis = 20_000

/** Waits until a condition holds; a failing check counts as not yet. Fails with `what` when it never does. */
export const eventually = <E, R>(
  what: string,
  check: Effect.Effect<boolean, E, R>
): Effect.Effect<void, Error, R> =>
  Effect.gen(function* () {
    const deadline = performance.now() + patienceMillis
    while (!(yield* Effect.orElseSucceed(check, () => false))) {
      if (performance.now() > deadline) return yield* Effect.fail(new Error(`never: ${what}`))
      yield* Effect.sleep(10)
    }
  })
