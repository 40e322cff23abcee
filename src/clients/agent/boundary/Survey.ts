import { lstatSync, readdirSync, readlinkSync, type Dirent, type Stats } from "node:fs"
import { sep } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { systemCode } from "../tools/ToolFailure.ts"
import { isGitName, isShapedAsRepository } from "./ProtectedPaths.ts"
import { selfRunningNames } from "./SelfRunning.ts"

/** The bounds of a survey of a workspace. */
export interface SurveyBounds {
  readonly directories: number
  readonly names: number
  readonly millis: number
}
export const surveyBounds: SurveyBounds = { directories: 100_000, names: 2_000_000, millis: 20_000 }

/** After so many directories other things of the process have their turn. */
const turn = 1_000
/** Times of a file system move in steps; a directory that changed so shortly before it was read may have changed again. */
const stepMillis = 50

interface SelfRunningEntry {
  /** the program that runs it */
  readonly by: string
  /** where it leads, of a link */
  readonly link: string | undefined
}

/** All in a workspace that git or another program takes up by itself. Paths are absolute. */
export interface Surveyed {
  /** `.git` entries; of directories that are repositories themselves their HEAD, and `commondir` where there is one */
  readonly git: ReadonlySet<string>
  /** the paths of the list of self-running files */
  readonly selfRunning: ReadonlyMap<string, SelfRunningEntry>
  /** directories that this user may not read */
  readonly closed: ReadonlySet<string>
  /** false: a bound was reached, and deeper directories are unknown */
  readonly isComplete: boolean
}

/** A directory as it was read. */
interface Known extends Content {
  readonly path: string
  readonly dev: number
  readonly ino: number
  /** its time of change; NaN, which equals nothing, where it may have changed again within one step of time */
  readonly ctimeMs: number
}

interface Content {
  readonly isClosed: boolean
  /** how many names are in it */
  readonly names: number
  /** paths of those below it that are looked at too */
  readonly directories: ReadonlyArray<string>
  readonly git: ReadonlyArray<string>
  readonly selfRunning: ReadonlyArray<readonly [path: string, entry: SelfRunningEntry]>
}

const entriesOf = (path: string): ReadonlyArray<Dirent> | undefined => {
  try {
    return readdirSync(path, { withFileTypes: true })
  } catch (error) {
    if (systemCode(error) === "EACCES") return undefined
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error))) return []
    throw error
  }
}

const linkAt = (path: string): string | undefined => {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (["EINVAL", "ENOENT", "EACCES"].includes(systemCode(error))) return undefined
    throw error
  }
}

/** Directories of a repository's own, where no user works. */
const insides = new Set(["objects", "refs", "logs", "hooks", "info"])

const isLookedInto = (entry: Dirent, isRepository: boolean): boolean =>
  entry.isDirectory() && !isGitName(entry.name) && !(isRepository && insides.has(entry.name))

const read = (root: string, path: string): Content => {
  const entries = entriesOf(path)
  if (entries === undefined) return { isClosed: true, names: 0, directories: [], git: [], selfRunning: [] }
  const names = entries.map(({ name }) => name)
  const lower = new Set(names.map((name) => name.toLowerCase()))
  const isRepository = isShapedAsRepository((sign) => lower.has(sign.toLowerCase()))
  const own = (name: string): boolean => isRepository && /^(head|commondir)$/i.test(name)
  const parts = path
    .slice(root.length)
    .split(sep)
    .filter((name) => name !== "")
  const at = (name: string): string => `${path}${sep}${name}`
  return {
    isClosed: false,
    names: names.length,
    directories: entries.filter((entry) => isLookedInto(entry, isRepository)).map(({ name }) => at(name)),
    git: names.filter((name) => isGitName(name) || own(name)).map(at),
    selfRunning: selfRunningNames(parts, names).map(({ name, by }) => [
      at(name),
      { by, link: linkAt(at(name)) }
    ])
  }
}

/** "none": it is gone, or no directory. "unknown": its path is too long for the system, or it lies in a closed one. */
const statOf = (path: string): Stats | "none" | "unknown" => {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    return stats?.isDirectory() === true ? stats : "none"
  } catch (error) {
    if (["ENAMETOOLONG", "EACCES"].includes(systemCode(error))) return "unknown"
    throw error
  }
}

const isSame = (known: Known, { ctimeMs, dev, ino }: Stats): boolean =>
  known.ctimeMs === ctimeMs && known.ino === ino && known.dev === dev

/** The findings so far, and the directories still to be searched. */
class Look {
  readonly queue: Array<string>
  readonly seen: Array<Known> = []
  readonly git = new Set<string>()
  readonly selfRunning = new Map<string, SelfRunningEntry>()
  readonly closed = new Set<string>()
  names = 0
  isComplete = true

  constructor(root: string) {
    this.queue = [root]
  }

  add(known: Known): void {
    this.seen.push(known)
    this.names += known.names
    if (known.isClosed) this.closed.add(known.path)
    for (const entry of known.git) this.git.add(entry)
    for (const [entry, what] of known.selfRunning) this.selfRunning.set(entry, what)
    this.queue.push(...known.directories)
  }
}

/**
 * Looks through a whole workspace, without following links. Its findings are kept: a directory whose time of change is the
 * same still has the same names, so looking again costs one `lstat` a directory. (That time, unlike the one of modification,
 * no program can set back.)
 */
export class Survey {
  readonly #root: string
  readonly #bounds: SurveyBounds
  #known: ReadonlyMap<string, Known> = new Map()
  #last: { readonly seen: ReadonlyArray<Known>; readonly surveyed: Surveyed } | undefined

  constructor(root: string, bounds: SurveyBounds = surveyBounds) {
    this.#root = root
    this.#bounds = bounds
  }

  async look(): Promise<Surveyed> {
    const { directories, millis, names } = this.#bounds
    const end = performance.now() + millis
    const last = this.#last
    if (last !== undefined && last.surveyed.isComplete && (await this.#isUnchanged(last.seen, end)))
      return last.surveyed
    const look = new Look(this.#root)
    let at = 0
    const isWithinBounds = (): boolean => at < directories && look.names < names && performance.now() < end
    for (; at < look.queue.length && isWithinBounds(); at++) {
      if (at % turn === turn - 1) await nextTurn()
      const known = this.#directory(look.queue[at] ?? "")
      if (known === "unknown") look.isComplete = false
      else if (known !== "none") look.add(known)
    }
    const { closed, git, seen, selfRunning } = look
    this.#known = new Map(seen.map((known) => [known.path, known]))
    const surveyed = { git, selfRunning, closed, isComplete: look.isComplete && at >= look.queue.length }
    this.#last = { seen, surveyed }
    return surveyed
  }

  async #isUnchanged(seen: ReadonlyArray<Known>, end: number): Promise<boolean> {
    for (const [at, known] of seen.entries()) {
      if (at % turn === turn - 1) {
        if (performance.now() > end) return false
        await nextTurn()
      }
      const stats = statOf(known.path)
      if (typeof stats === "string" || !isSame(known, stats)) return false
    }
    return true
  }

  #directory(path: string): Known | "none" | "unknown" {
    const now = Date.now()
    const stats = statOf(path)
    if (typeof stats === "string") return stats
    const known = this.#known.get(path)
    if (known !== undefined && isSame(known, stats)) return known
    const isSettled = Math.abs(now - stats.ctimeMs) > stepMillis
    const { dev, ino } = stats
    return { path, dev, ino, ctimeMs: isSettled ? stats.ctimeMs : Number.NaN, ...read(this.#root, path) }
  }
}
