import { Effect } from "effect"
import { setTimeout as sleep } from "node:timers/promises"

/** How long a test waits for a condition before it counts as never true; sweeps that would make many a one true come every minute. */
const patienceMillis = 60_000

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

/** The same for promises: asks until nothing is missing any more; the last missing thing is the error's text. */
export const until = async (
  what: string,
  missing: () => Promise<string | undefined>,
  timeoutMillis = patienceMillis
): Promise<void> => {
  const deadline = performance.now() + timeoutMillis
  // Most conditions hold within milliseconds; the others are not asked for all the time.
  for (let waitMillis = 5; ; waitMillis = Math.min(50, waitMillis * 2)) {
    const lacks = await missing()
    if (lacks === undefined) return
    if (performance.now() > deadline) throw new Error(`${what}: ${lacks}`)
    await sleep(waitMillis)
  }
}
