import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"

/**
 * Ends everything that a run has started, however the run ends, `kill -9` included. The reaper is a process of its own
 * in a process group of its own. It waits on a pipe that only the harness holds open; once that closes, it kills every
 * process whose environment, command line or working directory names the run's directory, and removes the directory.
 * Every process of a run does: the directory is its TMPDIR, and has the data of the embedded Postgres, whose environment is its own.
 */

export interface Reaper {
  /** ends what is left of the run; resolves when all is gone */
  readonly reap: () => Promise<void>
}

export const startReaper = (directory: string): Reaper => {
  const child: ChildProcess = spawn(process.execPath, [import.meta.filename, directory], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "inherit"]
  })
  const exited = once(child, "exit")
  child.unref()
  return {
    reap: async () => {
      child.ref()
      child.stdin?.end()
      await exited
    }
  }
}

const names = (pid: string, directory: string): boolean => {
  try {
    return (
      ["environ", "cmdline"].some((file) =>
        readFileSync(`/proc/${pid}/${file}`, "latin1").includes(directory)
      ) || readlinkSync(`/proc/${pid}/cwd`).startsWith(directory)
    )
  } catch (error) {
    // It has ended, or it is another user's.
    if (error instanceof Error && "code" in error) return false
    throw error
  }
}

const found = (directory: string): ReadonlyArray<number> =>
  process.platform === "linux"
    ? readdirSync("/proc")
        .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid && names(pid, directory))
        .map(Number)
    : []

const kill = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch (error) {
    // It ended in between.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error
  }
}

const tries = 100

const reapNow = async (directory: string): Promise<void> => {
  // A process may start another one while it is killed: look again until a look finds nothing.
  for (let count = 0; count < tries; count++) {
    const pids = found(directory)
    if (pids.length === 0) break
    for (const pid of pids) kill(pid)
    await pause(50)
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
}

if (process.argv[1] === import.meta.filename) {
  const directory = process.argv[2] ?? ""
  // An empty name would be in every command line.
  if (directory.length < 8) throw new Error("no directory of a run")
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => undefined)
  process.stdin.resume()
  process.stdin.on("end", () => {
    reapNow(directory).catch((error: unknown) => {
      console.error(error)
      process.exitCode = 1
    })
  })
}
