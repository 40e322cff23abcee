import { execFileSync } from "node:child_process"
import { arch, availableParallelism, cpus, platform, release, totalmem } from "node:os"

/** What a figure depends on besides the code. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryMiB: number
  readonly system: string
  readonly node: string
  /** commit measured; a "+" says that the tree had changes */
  readonly commit: string
}

const git = (...args: ReadonlyArray<string>): string => {
  try {
    return execFileSync("git", args, { cwd: import.meta.dirname, encoding: "utf8", stdio: "pipe" }).trim()
  } catch (error) {
    // A tree without git still can be measured.
    return error instanceof Error ? "" : String(error)
  }
}

export const machine = (): Machine => {
  const commit = git("rev-parse", "--short", "HEAD")
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memoryMiB: Math.round(totalmem() / 1024 / 1024),
    system: `${platform()} ${release()} ${arch()}`,
    node: process.version,
    commit: commit === "" ? "unknown" : commit + (git("status", "--porcelain") === "" ? "" : "+")
  }
}
