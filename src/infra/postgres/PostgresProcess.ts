import { Effect } from "effect"
import { spawn, type SpawnOptions } from "node:child_process"
import { join } from "node:path"
import { endOf, endsWithin, lastLines } from "../process/ChildEnd.ts"
import type { Running } from "../process/KeepRunning.ts"
import type { PostgresAccount } from "./PostgresAccount.ts"
import { PostgresFailed } from "./PostgresFailed.ts"

interface Program {
  readonly native: string
  readonly account: PostgresAccount | undefined
  readonly directory: string
  readonly args: ReadonlyArray<string>
}

/**
 * PostgreSQL's account may not be able to walk to DATA_DIR (under /root, say). A process needs no permission on the
 * directories above its working directory, so it is started there and told that its data lies in "the working
 * directory": node changes directory while it still is root.
 */
const dataArgument = (program: Program): string =>
  program.account === undefined ? program.directory : "/proc/self/cwd"

const spawnOptions = (program: Program): SpawnOptions => ({
  cwd: program.directory,
  // A group of its own: Ctrl-C in a terminal is for the server, which then stops its stores in order.
  detached: true,
  ...(program.account === undefined ? {} : { uid: program.account.uid, gid: program.account.gid })
})

const environment = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" }

/** Runs a program of PostgreSQL to its end, inside a shell script that sees it as `$0` and its arguments as `$@`. */
export const run = (
  program: Program & {
    readonly script: string
    readonly command: string
    readonly environment: Readonly<Record<string, string>>
  }
): Effect.Effect<void, PostgresFailed> =>
  Effect.callback<void, PostgresFailed>((resume) => {
    const command = join(program.native, "bin", program.command)
    const args = ["-c", program.script, command, "-D", dataArgument(program), ...program.args]
    const child = spawn("sh", args, {
      ...spawnOptions(program),
      env: { ...environment, ...program.environment },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const output: Array<string> = []
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk) => output.push(String(chunk)))
    child.once("error", (error) => output.push(error.message))
    child.once("close", (code) =>
      resume(
        code === 0
          ? Effect.void
          : Effect.fail(new PostgresFailed({ problem: `${program.command} failed`, output: output.join("") }))
      )
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/**
 * The shell waits for PostgreSQL and, beside that, for the end of its standard input: when this process dies in any
 * way, even by SIGKILL, the pipe closes and PostgreSQL gets SIGINT, its fast shutdown.
 */
const guard = `
exec 3<&0
"$0" "$@" </dev/null 3<&- & server=$!
(read _ <&3; kill -INT $server) 2>/dev/null & watch=$!
exec 3<&-
wait $server; code=$?
kill $watch 2>/dev/null
exit $code`

/** Starts the server; returns when it accepts connections. `exited` of the result is the end of the whole server. */
export const startServer = (
  program: Program & { readonly stopMillis: number }
): Effect.Effect<Running, PostgresFailed> =>
  Effect.gen(function* () {
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const child = spawn(
      "sh",
      ["-c", guard, join(program.native, "bin", "postgres"), "-D", dataArgument(program), ...program.args],
      { ...spawnOptions(program), env: environment, stdio: ["pipe", "ignore", "pipe"] }
    )
    // The other end may be gone first when both die together; then there is nothing left to stop.
    child.stdin?.on("error", (error) => runFork(Effect.logDebug("PostgreSQL's guard is gone", error)))
    const exited = endOf(child)
    const { promise: isReady, resolve } = Promise.withResolvers<boolean>()
    const last = lastLines(child, (line) => {
      if (line.includes("ready to accept connections")) resolve(true)
      runFork(/ PANIC:/.test(line) ? Effect.logWarning(line) : Effect.logDebug(line))
    })
    void exited.then(() => resolve(false))
    const stop = Effect.gen(function* () {
      child.stdin?.end()
      if (!(yield* endsWithin(exited, program.stopMillis)) && child.pid !== undefined) {
        yield* Effect.logWarning("PostgreSQL did not stop in time and is killed")
        // The group: shell and server.
        process.kill(-child.pid, "SIGKILL")
      }
    })
    if (yield* Effect.promise(() => isReady)) return { exited, stop }
    const end = yield* Effect.promise(() => exited)
    return yield* new PostgresFailed({
      problem: `PostgreSQL did not start on ${program.directory} (${end})`,
      output: last.join("\n")
    })
  })
