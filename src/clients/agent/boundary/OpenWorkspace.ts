import { lstatSync, realpathSync } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, join, resolve, sep } from "node:path"
import { systemCode } from "../tools/ToolFailure.ts"
import { linuxJail } from "./LinuxJail.ts"
import { portableJail } from "./PortableJail.ts"
import { folded, isGitName, type Protection } from "./ProtectedPaths.ts"
import type { Workspace } from "./Walk.ts"

/** A path free of links as far as it exists, with the rest as it is. */
export const realPath = (path: string): string => {
  const whole = resolve(path)
  try {
    return realpathSync(whole)
  } catch (error) {
    if (systemCode(error) !== "ENOENT" || dirname(whole) === whole) throw error
    return join(realPath(dirname(whole)), basename(whole))
  }
}

/** Whether `path` is `directory` or below it; both absolute. */
export const isWithin = (directory: string, path: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`)

/** Directories of the system that are no one's workspace. */
const system = ["/dev", "/proc", "/sys", "/run", "/boot", "/etc"]

const refusalOf = (root: string, closed: ReadonlyArray<string>): string | undefined => {
  if (!lstatSync(root).isDirectory()) return "is not a directory"
  if (root === "/") return "is the whole file system; take the directory of a project"
  if (isWithin(root, realPath(homedir())))
    return "is, or holds, the home directory with all keys and settings in it; take the directory of a project"
  if (system.some((directory) => isWithin(directory, root))) return "belongs to the system"
  if (closed.some((directory) => isWithin(directory, root))) return "belongs to the agent client"
  if (root.split(sep).some(isGitName)) return "is inside of a .git directory"
  return undefined
}

const partsBelow = (root: string, path: string): ReadonlyArray<string> =>
  path
    .slice(root.length)
    .split(sep)
    .filter((name) => name !== "")
    .map(folded)

/**
 * Opens a workspace, or rejects with the reason. `closed`: directories of the client itself; `sealed`: paths that only
 * the user changes; `named`: paths that need a question, beside the listed self-running files. No file of the workspace
 * widens the permissions.
 */
export const openWorkspace = (
  path: string,
  {
    closed,
    sealed = () => [],
    named = () => [],
    portable = process.platform !== "linux"
  }: {
    readonly closed: ReadonlyArray<string>
    readonly sealed?: (root: string) => ReadonlyArray<string>
    readonly named?: (root: string) => ReadonlyArray<string>
    readonly portable?: boolean
  }
): Workspace => {
  if (process.platform === "win32") throw new Error("The agent client runs on Linux and macOS")
  const root = realPath(path)
  const real = closed.map(realPath)
  const refusal = refusalOf(root, real)
  if (refusal !== undefined) throw new Error(`${root} cannot be a workspace: it ${refusal}`)
  const inside = (paths: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
    paths.filter((one) => one !== root && isWithin(root, one)).map((one) => partsBelow(root, one))
  const protection: Protection = {
    closed: inside(real),
    sealed: inside(sealed(root).map(realPath)),
    named: inside(named(root).map(realPath))
  }
  return { jail: portable ? portableJail(root) : linuxJail(root), protection }
}
