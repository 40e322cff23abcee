import { lstatSync } from "node:fs"
import { systemCode, ToolFailure } from "../tools/ToolFailure.ts"
import type { HeldDirectory } from "./Jail.ts"
import { linkTarget, maxLinks, type Workspace } from "./Walk.ts"
import { partsOf, partsOfLink, type Parts } from "./WorkspacePath.ts"

/** The file that a path leads to at this moment. */
export interface Whereabouts {
  /** free of links as far as the path exists, the rest as it is written */
  readonly parts: Parts
  /** device and inode; undefined where nothing is there */
  readonly file: string | undefined
}

const step = (
  workspace: Workspace,
  parts: Parts
): { readonly found: Whereabouts } | { readonly instead: Parts } => {
  const { jail } = workspace
  let directory: HeldDirectory = jail.enterRoot()
  try {
    for (const [index, name] of parts.entries()) {
      const target = linkTarget(directory, name)
      if (target !== undefined) {
        const instead = partsOfLink(jail.root, directory.parts, name, target)
        return { instead: [...instead, ...parts.slice(index + 1)] }
      }
      if (index === parts.length - 1) {
        const stats = lstatSync(directory.at(name), { throwIfNoEntry: false })
        return { found: { parts, file: stats && `${stats.dev}:${stats.ino}` } }
      }
      const next = directory.enter(name)
      directory.close()
      directory = next
    }
    return { found: { parts, file: undefined } }
  } finally {
    directory.close()
  }
}

/**
 * The target of a path, without changing or opening anything there: `..`, links and hard links make many paths of one
 * file. Undefined for a path that leads nowhere in the workspace; every call for such a path is refused.
 */
export const whereabouts = (workspace: Workspace, path: string): Whereabouts | undefined => {
  let parts: Parts = []
  try {
    parts = partsOf(workspace.jail.root, path)
    for (let links = 0; links <= maxLinks; links++) {
      const next = step(workspace, parts)
      if ("found" in next) return next.found
      parts = next.instead
    }
    return undefined
  } catch (error) {
    if (error instanceof ToolFailure) return undefined
    if (systemCode(error) === "") throw error
    // Something on the way is missing, no directory, or closed to this user: the rest is as it is written.
    return { parts, file: undefined }
  }
}
