import { type ChildProcess, spawn } from "node:child_process"
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { until } from "#test/harness/Eventually.ts"

/** A process that has ended, and whose parent lives and does not ask for it: it stays in the process table. */
export interface Unreaped {
  readonly pid: number
  /** as /proc has it: clock ticks between boot and start */
  readonly startedAt: string
  /** ends the parent; the zombie goes with it */
  readonly dispose: () => void
}

const fieldsOf = (pid: number): ReadonlyArray<string> => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
}

export const stateOf = (pid: number): string => fieldsOf(pid)[0] ?? ""

/** @param name what the process is called, at most 15 characters */
export const makeUnreaped = async (name: string): Promise<Unreaped> => {
  const directory = mkdtempSync(join(tmpdir(), "signalbox-unreaped-"))
  const program = join(directory, name)
  copyFileSync("/bin/true", program)
  // The shell becomes `sleep`, which waits for no child, before its child ends.
  const script = `(sleep 0.3; exec "$0") & echo $!; exec sleep 600`
  const parent: ChildProcess = spawn("sh", ["-c", script, program], { stdio: ["ignore", "pipe", "inherit"] })
  let told = ""
  parent.stdout?.on("data", (chunk) => (told += String(chunk)))
  await until("the child has ended", async () => {
    const pid = told.endsWith("\n") ? Number(told.trim()) : 0
    return pid > 0 && stateOf(pid) === "Z" ? undefined : `it is ${told}`
  })
  const pid = Number(told.trim())
  return {
    pid,
    startedAt: fieldsOf(pid)[19] ?? "",
    dispose: () => {
      parent.kill("SIGKILL")
      rmSync(directory, { recursive: true, force: true })
    }
  }
}
