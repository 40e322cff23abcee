import { openDirectory, type Workspace } from "../boundary/Walk.ts"
import { isGitName, requireOpen } from "../boundary/ProtectedPaths.ts"
import type { HeldDirectory } from "../boundary/Jail.ts"
import type { Parts } from "../boundary/WorkspacePath.ts"
import { isIgnored, withRulesOf, type IgnoreRules } from "./IgnoreRules.ts"
import { entriesOf } from "./ListDirectory.ts"
import { systemCode, ToolFailure } from "./ToolFailure.ts"

/** Files and directories that one search looks at. */
const maxVisited = 200_000
/** Directories that are held open at once. */
const maxDepth = 128

/** Something a search came by, in a directory that is held only while it is looked at. */
interface Visited {
  readonly directory: HeldDirectory
  readonly name: string
  readonly parts: Parts
  readonly isDirectory: boolean
}

/** The counts of a search, and whether it left something out because there was too much. */
export interface Tally {
  visited: number
  isCut: boolean
}

const enterQuietly = (
  workspace: Workspace,
  { directory, name, parts }: Visited
): HeldDirectory | undefined => {
  try {
    requireOpen(workspace.protection, parts)
    return directory.enter(name)
  } catch (error) {
    // Closed to tools, not readable, or exchanged since it was listed: a search goes on without it.
    if (error instanceof ToolFailure || systemCode(error) !== "") return undefined
    throw error
  }
}

function* below(
  workspace: Workspace,
  directory: HeldDirectory,
  outer: IgnoreRules,
  tally: Tally
): Generator<Visited, void> {
  const depth = directory.parts.length
  const rules = withRulesOf(outer, directory, ".gitignore", depth)
  const { entries, isWhole } = entriesOf(directory)
  if (!isWhole || depth >= maxDepth) tally.isCut = true
  for (const entry of entries) {
    const isDirectory = entry.isDirectory()
    // Links are never followed: their targets are found in place, or lie outside this workspace.
    if ((!isDirectory && !entry.isFile()) || isGitName(entry.name)) continue
    const parts = [...directory.parts, entry.name]
    if (isIgnored(rules, parts, isDirectory)) continue
    if (++tally.visited > maxVisited) {
      tally.isCut = true
      return
    }
    const visited = { directory, name: entry.name, parts, isDirectory }
    const inner = isDirectory && depth < maxDepth ? enterQuietly(workspace, visited) : undefined
    try {
      if (!isDirectory || inner !== undefined) yield visited
      if (inner !== undefined) yield* below(workspace, inner, rules, tally)
    } finally {
      inner?.close()
    }
  }
}

/** The rules that hold in a directory from those above it; none where it is itself left out, as it was asked for by name. */
const rulesAbove = (workspace: Workspace, parts: Parts): IgnoreRules => {
  let rules: IgnoreRules = []
  for (let depth = 0; depth < parts.length; depth++) {
    const directory = openDirectory(workspace, parts.slice(0, depth))
    try {
      rules = withRulesOf(rules, directory, ".gitignore", depth)
    } finally {
      directory.close()
    }
  }
  return isIgnored(rules, parts, true) ? [] : rules
}

/** Everything below a directory but what git ignores, `.git` itself, links and special files; in the order of names. */
export function* traverse(workspace: Workspace, parts: Parts, tally: Tally): Generator<Visited, void> {
  const directory = openDirectory(workspace, parts)
  try {
    yield* below(workspace, directory, rulesAbove(workspace, directory.parts), tally)
  } finally {
    directory.close()
  }
}
