import { Effect, Logger } from "effect"

/** Everything that is logged while the effect runs, one line a message. */
export const captureLog = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<string, E, R> =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => {
      lines.push(Array.isArray(message) ? message.map(String).join(" ") : String(message))
    })
    return Effect.as(Effect.provide(self, Logger.layer([logger])), undefined).pipe(
      Effect.map(() => lines.join("\n"))
    )
  })
