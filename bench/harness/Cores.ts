import { execFileSync } from "node:child_process"
import { availableParallelism } from "node:os"

/**
 * Server and client of a load run on a core each, so that neither takes the other's time and the server is what limits.
 * Where `taskset` is missing or there is one core only, the scheduler decides.
 */
export const serverCore = 0
export const clientCore = 1

const canPin = ((): boolean => {
  try {
    execFileSync("taskset", ["-V"], { stdio: "ignore" })
    return availableParallelism() > 1
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
})()

/** Program and arguments that start `node` on a core, for `fork`. */
export const nodeOn = (core: number): { readonly execPath: string; readonly execArgv: Array<string> } =>
  canPin
    ? { execPath: "taskset", execArgv: ["-c", String(core), process.execPath] }
    : { execPath: process.execPath, execArgv: [] }

/** Moves a running process, with all its threads and those that they start, to some cores. */
export const move = (pid: number, ...cores: ReadonlyArray<number>): void => {
  if (canPin) execFileSync("taskset", ["-a", "-c", "-p", cores.join(","), String(pid)], { stdio: "ignore" })
}
