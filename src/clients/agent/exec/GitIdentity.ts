import { execFile } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { promisify } from "node:util"
import { findProgram } from "./CommandEnvironment.ts"

const run = promisify(execFile)

const quoted = (value: string): string => `"${value.replace(/[\\"]/g, "\\$&").replace(/[\r\n]/g, " ")}"`

/** One value of the user's own configuration, never of a repository's; undefined where it says nothing. */
const valueOf = async (git: string, key: string): Promise<string | undefined> => {
  const env = { HOME: homedir(), PATH: "/usr/bin:/bin" }
  try {
    const { stdout } = await run(git, ["config", "--global", "--get", key], { cwd: "/", env, timeout: 5_000 })
    return stdout.trim()
  } catch {
    // git ends with 1 where a key has no value: commits then fail, and git says why.
    return undefined
  }
}

/**
 * Writes the configuration of git that commands find in their home directory: who commits, and nothing else of the user's
 * own, which may hold passwords and programs to run.
 */
export const writeGitIdentity = async (path: string, root: string): Promise<void> => {
  const git = findProgram("git", root)
  const values =
    git === undefined
      ? []
      : await Promise.all(
          ["name", "email"].map(async (key) => [key, await valueOf(git, `user.${key}`)] as const)
        )
  const lines = values.flatMap(([key, value]) => (value === undefined ? [] : [`\t${key} = ${quoted(value)}`]))
  const text = `[user]\n${lines.join("\n")}\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = ${quoted(root)}\n`
  await writeFile(path, text, { mode: 0o600 })
}
