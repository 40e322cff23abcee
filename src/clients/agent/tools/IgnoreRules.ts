import { closeSync, readFileSync } from "node:fs"
import ignore, { type Ignore } from "ignore"
import type { HeldDirectory } from "../boundary/Jail.ts"
import { openFile } from "../boundary/Walk.ts"
import { systemCode, ToolFailure } from "./ToolFailure.ts"

/** A larger one is not a list that someone wrote. */
const maxRuleBytes = 256 * 1024

/** The rules of one file, which hold below `depth` names. */
interface Rules {
  readonly depth: number
  readonly rules: Ignore
}

/** The rules of .gitignore files, outermost first. Source: gitignore(5). */
export type IgnoreRules = ReadonlyArray<Rules>

const textOf = (directory: HeldDirectory, name: string): string | undefined => {
  try {
    const { fd, stats } = openFile({ directory, name })
    try {
      return stats.size > maxRuleBytes ? undefined : readFileSync(fd, "utf8")
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    // A missing file, a link or a pipe of that name has no rules.
    if (error instanceof ToolFailure || systemCode(error) !== "") return undefined
    throw error
  }
}

/** The rules with those of `name` in this directory. */
export const withRulesOf = (
  outer: IgnoreRules,
  directory: HeldDirectory,
  name: string,
  depth: number
): IgnoreRules => {
  const text = textOf(directory, name)
  return text === undefined ? outer : [...outer, { depth, rules: ignore().add(text) }]
}

/** Whether a path is left out: the innermost file that says anything about it decides. */
export const isIgnored = (
  rules: IgnoreRules,
  parts: ReadonlyArray<string>,
  isDirectory: boolean
): boolean => {
  for (const { depth, rules: own } of rules.toReversed()) {
    const path = parts.slice(depth).join("/")
    if (path === "") continue
    const { ignored, unignored } = own.test(isDirectory ? `${path}/` : path)
    if (ignored || unignored) return ignored
  }
  return false
}
