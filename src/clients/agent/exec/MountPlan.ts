import { lstatSync } from "node:fs"
import { dirname, join } from "node:path"
import type { GitLayout, Repository } from "../boundary/GitLayout.ts"
import { isWithin } from "../boundary/OpenWorkspace.ts"

/** The part of the repositories that a command may change. */
export type GitAccess = "look" | "commit" | "all"

/**
 * - `pin`: as it is, but mounted, so that it cannot be renamed and something else put in its place
 * - `write`: a repository that may be changed, also within one that may not
 * - `read`: nothing in it can be changed
 * - `hide`: an empty directory is in its place
 */
export type MountKind = "pin" | "write" | "read" | "hide"
export interface Mount {
  readonly path: string
  readonly kind: MountKind
  /** the kind of path made there if it is missing, as a mount needs one */
  readonly missing: "directory" | "file"
}

export interface MountPlan {
  /** outermost first */
  readonly mounts: ReadonlyArray<Mount>
  /** paths that cannot be held: a link is on the way, which a command could exchange */
  readonly loose: ReadonlyArray<string>
  /** the self-running files among the read-only paths */
  readonly selfRunning: ReadonlyArray<string>
}

/** The self-running paths of a repository, and their configuration. Source: gitrepository-layout(5), git-config(1). */
const dangerous = (directory: string): ReadonlyArray<Mount> => [
  { path: join(directory, "hooks"), kind: "read", missing: "directory" },
  { path: join(directory, "config"), kind: "read", missing: "file" },
  { path: join(directory, "config.worktree"), kind: "read", missing: "file" },
  { path: join(directory, "info", "attributes"), kind: "read", missing: "file" },
  { path: join(directory, "modules"), kind: "read", missing: "directory" },
  { path: join(directory, "worktrees"), kind: "read", missing: "directory" }
]

const mountsOf = (
  { entry, kind, gitDir, commonDir }: Repository,
  access: GitAccess
): ReadonlyArray<Mount> => {
  const directories = [...new Set([gitDir, commonDir])]
  const own: Mount = { path: entry, kind: "read", missing: "directory" }
  const whole = (kind: MountKind): ReadonlyArray<Mount> =>
    directories.map((path): Mount => ({ path, kind, missing: "directory" }))
  if (access === "look") return [own, ...whole("read")]
  const entries = kind === "file" ? [own] : []
  if (access === "all") return [...entries, ...whole("write")]
  // A linked worktree's own directory says where its repository is.
  const links = gitDir === commonDir ? [] : ["commondir", "gitdir"]
  return [
    ...entries,
    ...whole("write"),
    ...directories.flatMap(dangerous),
    ...links.map((name): Mount => ({ path: join(gitDir, name), kind: "read", missing: "file" }))
  ]
}

const parents = (root: string, path: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let one = dirname(path); one !== root && isWithin(root, one); one = dirname(one)) found.push(one)
  return found
}

const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

const strength: Readonly<Record<MountKind, number>> = { pin: 0, write: 1, read: 2, hide: 3 }

export interface Protected {
  readonly root: string
  readonly layout: GitLayout
  /** read only, existing or not: directories of hooks */
  readonly sealed: ReadonlyArray<string>
  /** read only: self-running files, and paths named by repositories' configurations; none where the user allowed it */
  readonly selfRunning: ReadonlyArray<string>
  /** not there for commands at all: the client's own directories within the workspace */
  readonly closed: ReadonlyArray<string>
}

/** A mount costs the system time for each that is there already. */
const maxSelfRunning = 200

/**
 * Without a repository at the root, an empty directory stands in the place of each name that could make one of it: a
 * shell's prompt looks there at every line. git takes no directory for a HEAD.
 */
const noneAt = (root: string): ReadonlyArray<Mount> => [
  { path: join(root, ".git"), kind: "read", missing: "directory" },
  ...(lstatSync(join(root, "HEAD"), { throwIfNoEntry: false }) === undefined
    ? [{ path: join(root, "HEAD"), kind: "read", missing: "directory" } as const]
    : [])
]

/** Only paths that are there are held: nothing is made for others, which programs and people would come across. */
const heldFiles = (paths: ReadonlyArray<string>): ReadonlyArray<Mount> =>
  paths.slice(0, maxSelfRunning).map((path): Mount => ({ path, kind: "read", missing: "file" }))

const wanted = (
  { root, layout, sealed, selfRunning, closed }: Protected,
  access: GitAccess
): ReadonlyArray<Mount> => {
  const repositories = [layout.main, ...layout.nested].filter((one) => one !== undefined)
  const own = join(root, ".git")
  const hasOwn = repositories.some(({ entry }) => entry === own) || layout.odd.includes(own)
  const none = hasOwn || access === "all" || layout.bare.includes(root) ? [] : noneAt(root)
  return [
    ...none,
    ...repositories.flatMap((repository) => mountsOf(repository, access)),
    ...(access === "all" ? [] : layout.bare.flatMap(dangerous)),
    ...heldFiles(selfRunning),
    ...(access === "all" ? [] : sealed.map((path): Mount => ({ path, kind: "read", missing: "directory" }))),
    ...closed.map((path): Mount => ({ path, kind: "hide", missing: "directory" }))
  ]
}

/** The mounts over a workspace that is itself writable. */
export const mountPlan = (what: Protected, access: GitAccess): MountPlan => {
  const { root, layout } = what
  const loose = new Set(access === "all" ? [] : layout.odd)
  for (const path of what.selfRunning.slice(maxSelfRunning)) loose.add(path)
  const byPath = new Map<string, Mount>()
  const add = (mount: Mount): void => {
    const there = byPath.get(mount.path)
    if (there === undefined || strength[there.kind] < strength[mount.kind]) byPath.set(mount.path, mount)
  }
  for (const mount of wanted(what, access)) {
    const above = isWithin(root, mount.path) ? parents(root, mount.path) : []
    // Outside of the workspace nothing can be exchanged, but for the repository that a commit is written to.
    const within = [layout.main?.gitDir, layout.main?.commonDir].find(
      (directory) => directory !== undefined && directory !== mount.path && isWithin(directory, mount.path)
    )
    const pins = above.length > 0 || within === undefined ? above : parents(within, mount.path)
    if ([mount.path, ...pins].some(isLink)) {
      loose.add(mount.path)
      continue
    }
    add(mount)
    for (const path of pins) add({ path, kind: "pin", missing: "directory" })
  }
  const mounts = [...byPath.values()].sort((a, b) => a.path.length - b.path.length)
  const isCovered = ({ path, kind }: Mount): boolean => {
    const outer = mounts.findLast(
      (one) => one.kind !== "pin" && one.path !== path && isWithin(one.path, path)
    )
    return outer?.kind === "hide" || (outer?.kind === "read" && kind !== "write" && kind !== "hide")
  }
  return {
    mounts: mounts.filter((mount) => !isCovered(mount)),
    loose: [...loose],
    selfRunning: what.selfRunning
  }
}
