import { execFile } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { promisify } from "node:util"
import { findProgram } from "./CommandEnvironment.ts"

const run = promisify(execFile)

const quoted = (value: string): string => `"${value.replace(/[\\"]/g, "\\$&").replace(/[\r\n]/g, " ")}"`

/** Name and address of the user's own configuration, never of a repository's, as `user.name Ada` and the like. */
const ownIdentity = async (git: string): Promise<ReadonlyArray<string>> => {
  const env = { HOME: homedir(), PATH: "/usr/bin:/bin" }
  const args = ["config", "--global", "--get-regexp", "^user\\.(name|email)$"]
  try {
    const { stdout } = await run(git, args, { cwd: "/", env, timeout: 5_000 })
    return stdout.trim().split("\n")
  } catch {
    // git ends with 1 where neither is set: commits then fail, and git says why.
    return []
  }
}

/**
 * Writes the configuration of git that commands find in their home directory: the committer's name, and nothing else of
 * the user's own, which may hold passwords and programs to run.
 */
export const writeGitIdentity = async (path: string, root: string): Promise<void> => {
  const git = findProgram("git", root)
  const values = git === undefined ? [] : await ownIdentity(git)
  const lines = values.map((line) =>
    line.replace(/^user\.(\w+) (.*)$/, (_, key: string, value: string) => `\t${key} = ${quoted(value)}`)
  )
  const text = `[user]\n${lines.join("\n")}\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = ${quoted(root)}\n`
  await writeFile(path, text, { mode: 0o600 })
}
