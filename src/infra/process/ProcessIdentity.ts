import { readFileSync } from "node:fs"

/** A process id alone is reused; with the time of its start it names one process. */
export interface ProcessIdentity {
  readonly pid: number
  /** clock ticks between boot and start; "" where the system does not tell (no /proc) */
  readonly startedAt: string
}

const startedAt = (pid: number): string => {
  try {
    // The second field is the name in parentheses and may itself hold spaces: count from the last parenthesis.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    return (
      fields
        .slice(fields.lastIndexOf(")") + 2)
        .split(" ")
        .at(19) ?? ""
    )
  } catch {
    return ""
  }
}

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

export const self = (): ProcessIdentity => ({ pid: process.pid, startedAt: startedAt(process.pid) })

/** Is this very process still alive, not another one with its number? */
export const isSame = (identity: ProcessIdentity): boolean =>
  isAlive(identity.pid) && startedAt(identity.pid) === identity.startedAt
