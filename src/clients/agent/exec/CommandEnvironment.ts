import { existsSync } from "node:fs"
import { delimiter, isAbsolute, join } from "node:path"
import { isWithin, realPath } from "../boundary/OpenWorkspace.ts"
import { execFile } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { promisify } from "node:util"

/** The client's variables that commands see. All others, keys and tokens of all names, are left out. */
const passed = new Set(
  [
    "PATH LANG LANGUAGE TZ USER LOGNAME",
    "JAVA_HOME GOROOT GOPATH CARGO_HOME RUSTUP_HOME NVM_DIR VOLTA_HOME PYENV_ROOT VIRTUAL_ENV CONDA_PREFIX",
    "DOTNET_ROOT ANDROID_HOME PNPM_HOME BUN_INSTALL DENO_INSTALL"
  ].flatMap((line) => line.split(" "))
)
const proxies = /^(https?|all|no)_proxy$/i

type Environment = Readonly<Record<string, string>>

/** Settings of git that hold for every git below, above any repository's configuration (git-config(1)). */
const gitSettings: ReadonlyArray<readonly [string, string]> = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.pager", "cat"],
  ["protocol.ext.allow", "never"]
]

const gitEnvironment = (): Environment => {
  const settings = gitSettings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value]
  ])
  return {
    ...Object.fromEntries(settings),
    GIT_CONFIG_COUNT: `${gitSettings.length}`,
    // A read-only repository is looked at without the lock that would freshen its index.
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_EDITOR: "false",
    GIT_PAGER: "cat"
  }
}

/** Directories where programs are looked for: a relative one would mean the workspace. */
const searchPath = (path: string | undefined): ReadonlyArray<string> =>
  (path ?? "").split(delimiter).filter((directory) => isAbsolute(directory))

/** The environment of a command. It names a proxy only with the network, and only one that needs no password. */
export const commandEnvironment = (
  own: NodeJS.ProcessEnv,
  { home, network }: { readonly home: string; readonly network: boolean }
): Environment => {
  const kept = Object.entries(own).flatMap(([name, value]) =>
    value !== undefined &&
    (passed.has(name) || name.startsWith("LC_") || (network && proxies.test(name) && !value.includes("@")))
      ? [[name, value] as const]
      : []
  )
  return {
    ...Object.fromEntries(kept),
    PATH: searchPath(own["PATH"]).join(delimiter),
    HOME: home,
    TMPDIR: "/tmp",
    TERM: "dumb",
    PAGER: "cat",
    DEBIAN_FRONTEND: "noninteractive",
    npm_config_update_notifier: "false",
    ...gitEnvironment()
  }
}

/** A program of this machine, never one that lies in the workspace. */
export const findProgram = (name: string, root: string): string | undefined =>
  [...searchPath(process.env["PATH"]), "/usr/bin", "/bin"]
    .map((directory) => join(directory, name))
    .find((path) => existsSync(path) && !isWithin(root, realPath(path)))

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
