import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"

export interface StoreHolder {
  /** the first line it printed: "up", or why it could not start */
  readonly said: string
  readonly kill: (signal: "SIGKILL" | "SIGTERM") => Effect.Effect<void>
}

const ended = (child: ChildProcess): Promise<void> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once("exit", () => resolve()))

/** Another process that runs an embedded store on a data directory; ended with the scope. */
export const holdStore = (
  store: "postgres" | "clickhouse",
  dataDirectory: string
): Effect.Effect<StoreHolder, never, Scope.Scope> =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [join(import.meta.dirname, "holdStore.mjs"), store, dataDirectory], {
          stdio: ["ignore", "pipe", "inherit"]
        })
      ),
      (running) =>
        Effect.promise(() => {
          running.kill("SIGKILL")
          return ended(running)
        })
    )
    const said = yield* Effect.promise(
      () =>
        new Promise<string>((resolve) => {
          // Logs go to the same place: "up" or an error's text are the lines without a time.
          createInterface(child.stdout).on("line", (line) => {
            if (!/^\[\d/.test(line)) resolve(line)
          })
          void ended(child).then(() => resolve("ended"))
        })
    )
    const kill: StoreHolder["kill"] = (signal) =>
      Effect.promise(() => {
        child.kill(signal)
        return ended(child)
      })
    return { said, kill }
  })
