import { existsSync, readdirSync, readlinkSync, realpathSync } from "node:fs"
import { readIfThere } from "./PrivateFile.ts"

/** A process id alone is reused; with the time of its start it names one process. */
export interface ProcessIdentity {
  readonly pid: number
  /** clock ticks between boot and start; "" where the system does not tell (no /proc) */
  readonly startedAt: string
}

/**
 * The fields of /proc/PID/stat from its third (the state) on; [] where it has none. The second field is the name in
 * parentheses and may itself hold spaces: fields count from behind the last parenthesis.
 */
const statOf = (pid: number): ReadonlyArray<string> => {
  const text = readIfThere(`/proc/${pid}/stat`)
  return text === undefined ? [] : text.slice(text.lastIndexOf(")") + 2).split(" ")
}

const startedAt = (stat: ReadonlyArray<string>): string => stat[19] ?? ""

/** Ended, and kept in the process table until its parent asks for it, which under some PID 1 is never. */
const isOver = ([state]: ReadonlyArray<string>): boolean => state === "Z" || state === "X"

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it is there, under another user.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false
  }
  return !isOver(statOf(pid))
}

export const self = (): ProcessIdentity => ({ pid: process.pid, startedAt: startedAt(statOf(process.pid)) })

/** Is this very process still alive, not another one with its number? */
export const isSame = (identity: ProcessIdentity): boolean =>
  isAlive(identity.pid) && startedAt(statOf(identity.pid)) === identity.startedAt

/** Processes that live and work in this directory; [] where the system does not tell (no /proc). */
export const processesIn = (directory: string): ReadonlyArray<number> => {
  if (!existsSync("/proc/self/cwd") || !existsSync(directory)) return []
  const real = realpathSync(directory)
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid > 0 && workingDirectoryOf(pid) === real && isAlive(pid))
}

/** Undefined for a process that has ended, or that the system does not tell of: another user's, say. */
export const workingDirectoryOf = (pid: number): string | undefined => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return undefined
  }
}
