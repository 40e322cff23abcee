import { execFile, spawn } from "node:child_process"
import { closeSync, existsSync, lstatSync, realpathSync } from "node:fs"
import { homedir } from "node:os"
import { basename, delimiter, dirname, join } from "node:path"
import { promisify } from "node:util"
import type { GitLayout } from "../boundary/GitLayout.ts"
import { isWithin, realPath } from "../boundary/OpenWorkspace.ts"
import { findProgram } from "./CommandEnvironment.ts"
import type { MountKind, MountPlan } from "./MountPlan.ts"
import { hasSocketFilter, openSocketFilter } from "./SocketFilter.ts"

const run = promisify(execFile)

/** A bubblewrap that works here, and its arguments before any mount. */
export interface Bubblewrap {
  readonly program: string
  readonly isolation: ReadonlyArray<string>
  /** whether it takes a program of seccomp, which refuses sockets; else why not */
  readonly filter: true | { readonly reason: string }
}

interface NoBubblewrap {
  readonly reason: string
  /** it is there, and the system does not let it work */
  readonly installed: boolean
}

/** Files that bubblewrap is handed: it tells of its process on the first and reads the socket filter from the second. */
const statusFile = 3
const filterFile = 4

const isolation = [
  ..."--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --cap-drop ALL".split(
    " "
  ),
  ..."--die-with-parent --new-session".split(" ")
]
/** Since 0.8: no user namespace within, so less of the kernel is in reach. */
const noNested = [...isolation, "--disable-userns"]

/** Directories with what is none of a command's business, sockets of the system's services among it; empty ones instead. */
const emptied = ["/tmp", "/var/tmp", "/run", "/var/run", "/home", "/root", "/mnt", "/media"]
const emptiedBytes = 1024 * 1024 * 1024
/** Files that root may read although commands should not. */
const masked = ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"]
const maskedDirectories = ["/etc/ssl/private", "/etc/sudoers.d"]

const isRealDirectory = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** Toolchains below the home directory that are on the search path: their programs and libraries, not their settings. */
const toolchains = (home: string): ReadonlyArray<string> => {
  const entries = [...new Set((process.env["PATH"] ?? "").split(delimiter))].filter(
    (path) => path.startsWith("/") && existsSync(path)
  )
  const found = entries.flatMap((path) => {
    const directory = realpathSync.native(path)
    const prefix = dirname(directory)
    const libraries = basename(directory) === "bin" ? ["lib", "libexec", "include"] : []
    return [path, directory, ...libraries.map((name) => join(prefix, name))]
  })
  const own = [".rustup", ".cargo/registry", ".nvm/versions", ".pyenv/versions"].map((name) =>
    join(home, name)
  )
  const hidden = [...new Set([...found, ...own])].filter(
    (path) =>
      emptied.some((outer) => path !== outer && isWithin(outer, path)) ||
      (path !== home && isWithin(home, path))
  )
  return hidden.filter(isRealDirectory)
}

/** Names are looked up with this; on many systems it lies below /run. */
const resolverFiles = (): ReadonlyArray<string> => {
  const path = "/etc/resolv.conf"
  const real = existsSync(path) ? realpathSync(path) : path
  return real === path ? [] : [real]
}

/** HOME of commands: empty, writable, and gone with the command. It is where the user's is, as toolchains may lie there. */
export const sandboxHome = (): string => {
  const home = realPath(homedir())
  return home !== "/" && isRealDirectory(home) ? home : "/tmp"
}

const base = (home: string): ReadonlyArray<string> => {
  const hidden = [...new Set([...emptied, home])].filter(isRealDirectory)
  return [
    ..."--ro-bind / / --dev /dev --proc /proc".split(" "),
    ...hidden.flatMap((path) => ["--size", `${emptiedBytes}`, "--tmpfs", path]),
    ...masked.filter((path) => existsSync(path)).flatMap((path) => ["--ro-bind", "/dev/null", path]),
    ...maskedDirectories.filter(isRealDirectory).flatMap((path) => ["--tmpfs", path, "--remount-ro", path]),
    ...toolchains(home).flatMap((path) => ["--ro-bind", path, path]),
    ..."--ro-bind-try /run/current-system /run/current-system".split(" ")
  ]
}

const mountArguments: Readonly<Record<MountKind, (path: string) => ReadonlyArray<string>>> = {
  pin: (path) => ["--bind", path, path],
  write: (path) => ["--bind", path, path],
  read: (path) => ["--ro-bind", path, path],
  hide: (path) => ["--tmpfs", path]
}

export interface SandboxOptions {
  readonly root: string
  readonly layout: GitLayout
  readonly plan: MountPlan
  /** the client's own directories outside of the workspace: empty for commands */
  readonly hidden: ReadonlyArray<string>
  readonly network: boolean
  /** outputs of earlier commands, which may be read */
  readonly outputs: string
  /** the .gitconfig in the home directory of commands */
  readonly gitIdentity: string
}

/** The working tree that the workspace is a part of: it can be read. */
const treeAbove = ({ root, layout }: SandboxOptions): ReadonlyArray<string> => {
  const tree = layout.main === undefined ? root : dirname(layout.main.entry)
  return tree !== root && isWithin(tree, root) ? ["--ro-bind", tree, tree] : []
}

/** Arguments up to the `--` before the command. Each mount covers those before it. */
export const sandboxArguments = (bubblewrap: Bubblewrap, options: SandboxOptions): ReadonlyArray<string> => {
  const { root, plan, hidden, network, outputs, gitIdentity } = options
  const home = sandboxHome()
  return [
    ...bubblewrap.isolation,
    ...(network ? [] : ["--unshare-net"]),
    ...base(home),
    ...(network ? resolverFiles().flatMap((path) => ["--ro-bind-try", path, path]) : []),
    ...treeAbove(options),
    ...hidden.filter(isRealDirectory).flatMap((path) => ["--tmpfs", path]),
    "--bind",
    root,
    root,
    ...plan.mounts.flatMap(({ kind, path }) => mountArguments[kind](path)),
    "--ro-bind",
    outputs,
    outputs,
    ...plan.mounts.flatMap(({ kind, path }) => (kind === "hide" ? ["--remount-ro", path] : [])),
    "--ro-bind",
    gitIdentity,
    join(home, ".gitconfig"),
    "--chdir",
    root,
    ...(bubblewrap.filter === true ? ["--seccomp", `${filterFile}`] : []),
    "--json-status-fd",
    `${statusFile}`,
    "--"
  ]
}

/** Why it cannot be used so; undefined when it can. */
const works = async (
  program: string,
  flags: ReadonlyArray<string>,
  filtered: boolean
): Promise<string | undefined> => {
  const filter = filtered ? openSocketFilter({ sockets: false }) : undefined
  const seccomp = filtered ? ["--seccomp", `${filterFile}`] : []
  const args = [
    ...flags,
    "--unshare-net",
    ...base(sandboxHome()),
    ...seccomp,
    "--",
    "/bin/sh",
    "-c",
    "exit 0"
  ]
  try {
    const child = spawn(program, args, {
      timeout: 10_000,
      env: {},
      stdio: ["ignore", "ignore", "pipe", "ignore", filter ?? "ignore"]
    })
    let told = ""
    child.stderr?.on("data", (data: Buffer) => (told += data.toString()))
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    child.once("error", (error) => resolve(String(error)))
    child.once("close", (code, signal) =>
      resolve(code === 0 ? undefined : told.trim() || `it ended with ${code ?? signal}`)
    )
    return await promise
  } finally {
    if (filter !== undefined) closeSync(filter)
  }
}

/** Such as "0.8.0". */
export const versionOf = async ({ program }: Bubblewrap): Promise<string> => {
  const { stdout } = await run(program, ["--version"], { env: {} })
  return stdout.replace("bubblewrap", "").trim()
}

/** Looks for bubblewrap, and tries it as commands will use it; else why there is none. Never one from the workspace. */
export const findBubblewrap = async (root: string): Promise<Bubblewrap | NoBubblewrap> => {
  if (process.platform !== "linux")
    return { reason: `bubblewrap runs on Linux, this is ${process.platform}`, installed: false }
  const program = findProgram("bwrap", root)
  if (program === undefined) return { reason: "bubblewrap (bwrap) is not installed", installed: false }
  let reason = ""
  for (const filter of hasSocketFilter ? [true, false] : [false]) {
    for (const flags of [noNested, isolation]) {
      const failed = await works(program, flags, filter)
      if (failed === undefined) {
        const why = hasSocketFilter ? reason : `none is known for ${process.arch}`
        return { program, isolation: flags, filter: filter || { reason: why } }
      }
      reason = failed
    }
  }
  return { reason: `bubblewrap cannot be used here: ${reason}`, installed: true }
}
