import type { ChildProcess } from "node:child_process"
import { createInterface } from "node:readline"
import { Effect } from "effect"

/** The end of a child process in words: its exit code or signal, or the reason that it did not start. Never rejects. */
export const endOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message))
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`))
  })

/** Whether the process ends within so many milliseconds. */
export const endsWithin = (exited: Promise<string>, millis: number): Effect.Effect<boolean> =>
  Effect.promise(() => exited).pipe(
    Effect.as(true),
    Effect.timeoutOrElse({ duration: millis, orElse: () => Effect.succeed(false) })
  )

/** The number of a child's last lines that an error shows. */
const shownLines = 20

/** Hands on the lines of a child's standard error; the array has the last ones at any time. */
export const lastLines = (child: ChildProcess, onLine: (line: string) => void): ReadonlyArray<string> => {
  const last: Array<string> = []
  if (child.stderr !== null) {
    createInterface(child.stderr).on("line", (line) => {
      if (last.push(line) > shownLines) last.shift()
      onLine(line)
    })
  }
  return last
}
