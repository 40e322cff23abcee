import { existsSync, lstatSync, readFileSync, readdirSync, type Dirent } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, isAbsolute, join, resolve } from "node:path"
import { systemCode } from "../tools/ToolFailure.ts"
import { isWithin, realPath } from "./OpenWorkspace.ts"
import { isGitName } from "./ProtectedPaths.ts"

/** A repository, its paths absolute and free of links. */
export interface Repository {
  /** `.git` as it lies in the working tree */
  readonly entry: string
  readonly kind: "directory" | "file"
  /** where index and HEAD are; for worktrees and submodules somewhere else than `entry` */
  readonly gitDir: string
  /** where objects, hooks and configuration are; not `gitDir` in a linked worktree */
  readonly commonDir: string
}

/** Every repository that commands in a workspace may come by. */
export interface GitLayout {
  /** that of the root or of a directory above it; it may lie outside of the workspace */
  readonly main: Repository | undefined
  /** those of directories below the root, as far as they were looked for */
  readonly nested: ReadonlyArray<Repository>
  /** directories in the workspace that are repositories themselves, without a working tree around them */
  readonly bare: ReadonlyArray<string>
  /** `.git` entries that are links or lead to no repository of theirs: nothing can be promised for these */
  readonly odd: ReadonlyArray<string>
}

/** How many directories below the root are searched for repositories. */
const nestedDirectories = 3_000
const nestedDepth = 6
const nestedRepositories = 256

const firstLine = (path: string): string => {
  const [line = ""] = readFileSync(path, "utf8").slice(0, 8_192).split("\n")
  return line.trim()
}

const isRepository = (directory: string): boolean =>
  existsSync(join(directory, "HEAD")) &&
  (existsSync(join(directory, "objects")) || existsSync(join(directory, "commondir")))

/** Whether what a `.git` file points to points back: else any repository of the user could be named there. */
const pointsBack = (gitDir: string, entry: string): boolean => {
  if (existsSync(join(gitDir, "gitdir")))
    return realPath(resolve(gitDir, firstLine(join(gitDir, "gitdir")))) === entry
  const config = join(gitDir, "config")
  const worktree = existsSync(config)
    ? /^\s*worktree\s*=\s*(.+)$/m.exec(readFileSync(config, "utf8"))?.[1]
    : undefined
  return worktree !== undefined && realPath(resolve(gitDir, worktree.trim())) === dirname(entry)
}

/**
 * The target of a `.git` file. All of it is checked: its repository is mounted for commands, and a planted file must
 * not have another directory mounted. Source: gitrepository-layout(5), git-worktree(1).
 */
const linked = (entry: string): Repository | undefined => {
  const target = /^gitdir:\s*(.+)$/.exec(firstLine(entry))?.[1]
  if (target === undefined) return undefined
  const gitDir = realPath(isAbsolute(target) ? target : resolve(dirname(entry), target))
  if (!existsSync(gitDir) || !isRepository(gitDir) || !pointsBack(gitDir, entry)) return undefined
  const common = join(gitDir, "commondir")
  if (!existsSync(common)) return { entry, kind: "file", gitDir, commonDir: gitDir }
  const commonDir = realPath(resolve(gitDir, firstLine(common)))
  const isWorktree = dirname(gitDir) === join(commonDir, "worktrees") && isRepository(commonDir)
  return isWorktree ? { entry, kind: "file", gitDir, commonDir } : undefined
}

type Look = { readonly repository: Repository } | "odd" | "none"

const lookAt = (directory: string): Look => {
  const entry = join(directory, ".git")
  const stats = lstatSync(entry, { throwIfNoEntry: false })
  if (stats === undefined) return "none"
  if (stats.isDirectory())
    return { repository: { entry, kind: "directory", gitDir: entry, commonDir: entry } }
  const repository = stats.isFile() ? linked(entry) : undefined
  return repository === undefined ? "odd" : { repository }
}

const subdirectories = (directory: string): ReadonlyArray<Dirent> => {
  try {
    return readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  } catch (error) {
    if (["EACCES", "ENOENT", "ENOTDIR"].includes(systemCode(error))) return []
    throw error
  }
}

/** A command can make a `.git` below the root: nothing outside of the workspace is mounted because of one. */
const isHeldIn = (root: string, { gitDir, commonDir }: Repository): boolean =>
  isWithin(root, gitDir) && isWithin(root, commonDir)

/** All but that of the root itself. */
interface Below {
  readonly nested: Array<Repository>
  readonly bare: Array<string>
  readonly odd: Array<string>
}

const addEntry = (root: string, directory: string, found: Below): void => {
  const look = lookAt(directory)
  if (look === "odd" || (look !== "none" && !isHeldIn(root, look.repository)))
    found.odd.push(join(directory, ".git"))
  else if (look !== "none") found.nested.push(look.repository)
}

/** Breadth first, so that those near the root are found first. */
const nestedBelow = (root: string): Below => {
  const found: Below = { nested: [], bare: [], odd: [] }
  let level = [root]
  let left = nestedDirectories
  for (let depth = 0; depth < nestedDepth && level.length > 0 && left > 0; depth++) {
    const next: Array<string> = []
    for (const directory of level)
      for (const { name } of subdirectories(directory)) {
        if (left-- <= 0 || found.nested.length + found.odd.length >= nestedRepositories) return found
        if (name === "node_modules" || isGitName(name)) continue
        const path = join(directory, name)
        addEntry(root, path, found)
        next.push(path)
      }
    level = next
  }
  return found
}

/** Of a survey: those that are too many to be held are odd. */
const nestedOf = (root: string, entries: Iterable<string>): Below => {
  const found: Below = { nested: [], bare: [], odd: [] }
  for (const entry of entries) {
    const directory = dirname(entry)
    const isBare = !isGitName(basename(entry))
    if (found.nested.length + found.bare.length >= nestedRepositories) found.odd.push(entry)
    else if (isBare && basename(entry).toLowerCase() === "head") found.bare.push(directory)
    else if (!isBare && directory !== root) addEntry(root, directory, found)
  }
  return found
}

/**
 * Looks at the repositories of a workspace with plain reads: git itself is not run, so no configuration is obeyed.
 * `entries`: those that a survey found; without them what is near the root is looked for.
 */
export const gitLayoutOf = (root: string, entries?: Iterable<string>): GitLayout => {
  const { odd, ...below } = entries === undefined ? nestedBelow(root) : nestedOf(root, entries)
  const home = realPath(homedir())
  for (let directory = root; ; directory = dirname(directory)) {
    // Above a project may lie a home directory that is itself kept in git: that is none of the project's business.
    if (directory !== root && isWithin(directory, home)) return { main: undefined, ...below, odd }
    const look = lookAt(directory)
    if (look === "odd") return { main: undefined, ...below, odd: [join(directory, ".git"), ...odd] }
    const isOwn = look !== "none" && (directory === root || isRepository(look.repository.gitDir))
    if (isOwn) return { main: look.repository, ...below, odd }
    if (directory === dirname(directory)) return { main: undefined, ...below, odd }
  }
}
