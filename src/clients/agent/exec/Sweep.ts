import { lstatSync, readdirSync, type Stats } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"
import { isWithin } from "../boundary/OpenWorkspace.ts"
import { isGitName } from "../boundary/ProtectedPaths.ts"
import { setAside } from "../boundary/SetAside.ts"
import type { Jail } from "../boundary/Jail.ts"
import { surveyBounds, type Surveyed } from "../boundary/Survey.ts"
import { askVariable } from "./MissedNeeds.ts"

/** A path that was made while a command ran, and would run by itself. */
interface Planted {
  readonly path: string
  readonly why: string
  /** with which approval it may be made */
  readonly kind: "repository" | "self_running"
}

/** Rights that a command had: their effects are not looked for. */
interface SweepAllowed {
  readonly repository: boolean
  readonly selfRunning: boolean
  /** the user allowed it all their own rights: it is reported, and left running */
  readonly unsandboxed: boolean
  /** milliseconds since 1970: a new file that was changed before this is the user's */
  readonly since: number
}

/** Files of a repository that run by themselves, or say what does. Source: gitrepository-layout(5). */
const dangerousNames = ["HEAD", "config", "config.worktree", "commondir", "info"]
/** More than a person makes in a moment. */
const maxChecked = 500

/** Gives what lies there and below it one after the other, without following links. */
const below = function* (path: string): Generator<Stats> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  yield stats
  if (stats.isDirectory()) for (const name of readdirSync(path)) yield* below(join(path, name))
}

const isAllOlder = (path: string, since: number): boolean => {
  let left = maxChecked
  for (const { ctimeMs } of below(path)) if (ctimeMs >= since || left-- <= 0) return false
  return true
}

/** A path that is not there is older than everything. */
const ownOlder = (path: string, since: number): boolean =>
  (lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? -1) < since

/**
 * Whether neither the directories on the way nor what runs was changed since: then it lay there before, and was not written.
 * No program can set a time of change back.
 */
const isOlder = (root: string, { path, kind }: Planted, since: number): boolean => {
  const { dev } = lstatSync(root)
  for (let one = dirname(path); isWithin(root, one); one = dirname(one))
    if (!ownOlder(one, since) || lstatSync(one).dev !== dev) return false
  if (kind === "self_running") return isAllOlder(path, since)
  const repository = isGitName(basename(path)) ? path : dirname(path)
  return (
    ownOlder(path, since) &&
    dangerousNames.every((name) => ownOlder(join(repository, name), since)) &&
    isAllOlder(join(repository, "hooks"), since)
  )
}

/** As many are named one by one, and as many renamed. */
const maxNamed = 20
const maxRenamed = 20_000

const whyGit = (path: string): string =>
  isGitName(basename(path))
    ? "is a repository that was not there, and git runs what its configuration says"
    : `makes a repository of ${basename(dirname(path))}/, and git runs what the configuration there says`

const plantedBetween = (before: Surveyed, after: Surveyed, allowed: SweepAllowed): ReadonlyArray<Planted> => {
  const git = allowed.repository ? [] : [...after.git].filter((path) => !before.git.has(path))
  const self = allowed.selfRunning
    ? []
    : [...after.selfRunning].filter(([path, { link }]) => {
        const earlier = before.selfRunning.get(path)
        return earlier === undefined || earlier.link !== link
      })
  const found: ReadonlyArray<Planted> = [
    ...git.map((path): Planted => ({ path, why: whyGit(path), kind: "repository" })),
    ...self.map(([path, { by }]): Planted => ({
      path,
      why: `is taken up by itself by ${by}`,
      kind: "self_running"
    }))
  ]
  let outer: string | undefined
  return found
    .toSorted((a, b) => (`${a.path}${sep}` < `${b.path}${sep}` ? -1 : 1))
    .filter(({ path }) => {
      const isInner = outer !== undefined && isWithin(outer, path)
      if (!isInner) outer = path
      return !isInner
    })
}

const line = (root: string, { path, why, kind }: Planted, jail: Jail | undefined): string => {
  const name = relative(root, path)
  if (jail === undefined) return `${name} ${why}: look at it before you go on`
  const aside = setAside(jail, name.split(sep))
  const ask = `start the command with ${askVariable}=${kind} to ask the user for it`
  if (aside !== undefined) return `${name} ${why}: it was renamed to ${aside}; ${ask}`
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return `${name} ${why}: it is gone already`
  return `${name} ${why}, and could not be renamed: remove it before anything is run there`
}

/**
 * Looks for what a command has made that would run by itself, and gives it other names. A mount cannot hold what is made in
 * places that were not foreseen, and a mount over each missing name would leave empty files for others to come across.
 * Answers with what to tell, a line each.
 */
export const sweep = (
  jail: Jail,
  before: Surveyed,
  after: Surveyed,
  allowed: SweepAllowed
): ReadonlyArray<string> => {
  const found = plantedBetween(before, after, allowed).filter(
    (planted) => !isOlder(jail.root, planted, allowed.since)
  )
  const held = allowed.unsandboxed ? undefined : jail
  const lines = found.slice(0, maxRenamed).map((planted) => line(jail.root, planted, held))
  const more = lines.length > maxNamed ? [`${lines.length - maxNamed} more like these`] : []
  if (found.length > maxRenamed)
    more.push(
      `${found.length - maxRenamed} more were left: remove what this command made before anything is run there`
    )
  const closed = [...after.closed]
    .filter((path) => !before.closed.has(path))
    .map((path) => `${relative(jail.root, path)} cannot be looked into: do not run anything there`)
  const bound = after.isComplete
    ? []
    : [
        `the workspace is too large to be looked through (${surveyBounds.directories} directories): git or an editor may run what this command made deep in it`
      ]
  return [...lines.slice(0, maxNamed), ...more, ...closed.slice(0, maxNamed), ...bound]
}
