import { readdirSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { systemCode } from "../tools/ToolFailure.ts"
import { folded, type Protection } from "./ProtectedPaths.ts"
import { packageDirectories, selfRunningFiles } from "./SelfRunningFiles.ts"
import type { Parts } from "./WorkspacePath.ts"

/** A path that other programs run by themselves, or obey. */
interface SelfRunningPath {
  /** the file, or the directory that holds it */
  readonly parts: Parts
  readonly by: string
}

interface Pattern {
  /** the names before the last, folded */
  readonly above: Parts
  readonly matches: (name: string) => boolean
  readonly by: string
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")

/** By last name where that is whole; those with a `*` are few, and tried one after the other. */
const exact = new Map<string, ReadonlyArray<Pattern>>()
const wild: Array<Pattern> = []
const wildNames: Array<string> = []

for (const { by, paths } of selfRunningFiles)
  for (const path of paths) {
    const names = path.split("/").map(folded)
    const last = names.at(-1) ?? ""
    const above = names.slice(0, -1)
    if (last.includes("*")) {
      const source = `^${last.split("*").map(escaped).join(".+")}$`
      const expression = new RegExp(source, "s")
      wildNames.push(source)
      wild.push({ above, matches: (name) => expression.test(name), by })
    } else exact.set(last, [...(exact.get(last) ?? []), { above, matches: () => true, by }])
  }

/** One look for names that no pattern matches, as nearly all are. */
const anyWild = new RegExp(wildNames.join("|"), "s")

const isBelow = (above: Parts, directory: Parts): boolean => {
  const from = directory.length - above.length
  return from >= 0 && above.every((name, index) => name === directory[from + index])
}

/** The program that runs `name` in a directory by itself; both folded. Undefined where none does. */
const runBy = (directory: Parts, name: string): string | undefined =>
  [...(exact.get(name) ?? []), ...(anyWild.test(name) ? wild : [])].find(
    ({ above, matches }) => matches(name) && isBelow(above, directory)
  )?.by

/** Those of a directory's names that run by themselves; `directory` from the workspace's root. */
export const selfRunningNames = (
  directory: Parts,
  names: ReadonlyArray<string>
): ReadonlyArray<{ readonly name: string; readonly by: string }> => {
  const parts = directory.map(folded)
  if (parts.some((part) => packageDirectories.has(part))) return []
  return names.flatMap((name) => {
    const by = runBy(parts, folded(name))
    return by === undefined ? [] : [{ name, by }]
  })
}

/** Whether what is written at a path runs by itself: the path or a directory above it is in the list, or named by git's configuration. */
export const selfRunningAt = ({ named }: Protection, parts: Parts): SelfRunningPath | undefined => {
  const names = parts.map(folded)
  const isNamed = (entry: Parts): boolean =>
    entry.length <= names.length && entry.every((name, index) => name === names[index])
  const entry = named.find(isNamed)
  if (entry !== undefined)
    return { parts: parts.slice(0, entry.length), by: "git, as this repository's configuration says" }
  for (const [index, name] of names.entries()) {
    if (packageDirectories.has(name)) return undefined
    const by = runBy(names.slice(0, index), name)
    if (by !== undefined) return { parts: parts.slice(0, index + 1), by }
  }
  return undefined
}

/** The file or directory that a link leads to; undefined where it leads to none. */
export const linkEnd = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES"].includes(systemCode(error))) return undefined
    throw error
  }
}

/** The targets of a workspace's linked self-running files: the file tools reach them by other paths too. */
export const linkedSelfRunning = (root: string): ReadonlyArray<string> => {
  const links = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isSymbolicLink())
    .map(({ name }) => name)
  return selfRunningNames([], links)
    .map(({ name }) => linkEnd(join(root, name)))
    .filter((path) => path !== undefined)
}
