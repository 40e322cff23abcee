import { randomBytes } from "node:crypto"
import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync, type Stats } from "node:fs"
import { join } from "node:path"
import type { GitLayout } from "../boundary/GitLayout.ts"

/** A longer one is no list of a person's commits. */
const maxBytes = 4 * 1024 * 1024

/** A line that git hands to a shell at `git rebase --continue`. Source: git-rebase(1), sequencer.c parse_insn_line. */
const runsShell = /^[ \t\r]*(?:x|exec)(?:[ \t\r]|$)/

const todosOf = ({ main, nested }: GitLayout): ReadonlyArray<string> =>
  [main, ...nested]
    .filter((one) => one !== undefined)
    .map(({ gitDir }) => join(gitDir, "rebase-merge", "git-rebase-todo"))

const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

const linesOf = (path: string): ReadonlyArray<string> => {
  const stats = statOf(path)
  return stats?.isFile() === true && stats.size <= maxBytes ? readFileSync(path, "utf8").split("\n") : []
}

/** Lines of a rebase that was begun before a command, and that run something when it goes on: those are the user's. */
export type RebaseCommands = ReadonlyMap<string, ReadonlySet<string>>

export const rebaseCommands = (layout: GitLayout): RebaseCommands =>
  new Map(
    todosOf(layout).map((path) => [path, new Set(linesOf(path).filter((line) => runsShell.test(line)))])
  )

const replace = (path: string, lines: ReadonlyArray<string>): void => {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  writeFileSync(temporary, lines.join("\n"), { flag: "wx", mode: 0o600 })
  renameSync(temporary, path)
}

/** A list that is a link, has other names or is too long could be another one later; so could one in a linked directory. */
const isOdd = (path: string): boolean => {
  const directory = statOf(join(path, ".."))
  const stats = statOf(path)
  if (directory !== undefined && !directory.isDirectory()) return true
  return stats !== undefined && (!stats.isFile() || stats.nlink > 1 || stats.size > maxBytes)
}

/**
 * Takes out of the lists of rebases that a command has left what would run on the host when the user goes on with one.
 * Answers with what to tell, a line each.
 */
export const removeRebaseCommands = (layout: GitLayout, before: RebaseCommands): ReadonlyArray<string> =>
  todosOf(layout).flatMap((path) => {
    if (isOdd(path)) {
      rmSync(join(path, ".."), { recursive: true, force: true })
      return [`${join(path, "..")} was removed: its list of steps is no plain file`]
    }
    const lines = linesOf(path)
    const own = before.get(path)
    const kept = lines.filter((line) => !runsShell.test(line) || own?.has(line) === true)
    if (kept.length === lines.length) return []
    replace(path, kept)
    return [
      `${lines.length - kept.length} exec lines were removed from ${path}: they would run outside of the sandbox when the rebase goes on`
    ]
  })
