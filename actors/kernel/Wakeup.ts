import * as Effect from "effect/Effect"

/** Wakes one fiber that waits for work. A nudge that comes while it is at work is not lost. */
export class Wakeup {
  #isSet = false
  #resume: () => void = () => undefined

  set(): void {
    this.#isSet = true
    this.#resume()
  }

  /** Returns after the next `set`, or one since the last wait, and at the latest after `patienceMillis`. */
  wait(patienceMillis: number): Effect.Effect<void> {
    const nudged = Effect.callback<void>((resume) => {
      if (this.#isSet) return resume(Effect.void)
      this.#resume = () => resume(Effect.void)
      return Effect.sync(() => {
        this.#resume = () => undefined
      })
    })
    const waited = patienceMillis === Infinity ? nudged : Effect.timeoutOption(nudged, patienceMillis)
    return Effect.andThen(
      waited,
      Effect.sync(() => {
        this.#isSet = false
      })
    )
  }
}
