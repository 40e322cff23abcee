import { Effect } from "effect"
import type { SinkUnavailable } from "./Sink.ts"

/** Attempts differ in numbers (bytes, milliseconds, offsets) although their cause is the same. */
const causeOf = ({ problem, reason }: SinkUnavailable): string =>
  `${reason ?? "away"} ${problem.replace(/\d[\d.,]*/g, "#")}`

/** Why a consumer stands still. Said once for each cause, and once when it is over. */
export class Trouble {
  readonly #name: string
  #said: string | undefined
  #current: SinkUnavailable | undefined

  constructor(name: string) {
    this.#name = name
  }

  /** Undefined: it does not stand still. */
  get current(): SinkUnavailable | undefined {
    return this.#current
  }

  /** For good, in order, and so without a word. */
  stop(error: SinkUnavailable): void {
    this.#current = error
  }

  note(error: SinkUnavailable): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#current = error
      const cause = causeOf(error)
      if (this.#said === cause) return Effect.void
      this.#said = cause
      return Effect.logWarning(
        `${this.#name}: records wait in the log, and are tried again: ${error.problem}`
      )
    })
  }

  readonly over: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#said === undefined) return Effect.void
    this.#said = undefined
    this.#current = undefined
    return Effect.logInfo(`${this.#name}: records are written again`)
  })
}
