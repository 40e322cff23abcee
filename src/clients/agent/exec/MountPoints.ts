import { closeSync, constants, lstatSync, mkdirSync, openSync, rmdirSync, unlinkSync } from "node:fs"
import { dirname } from "node:path"
import { systemCode } from "../tools/ToolFailure.ts"
import type { Mount } from "./MountPlan.ts"

/** The path made for a mount, innermost last. */
type Made = { readonly path: string; readonly kind: Mount["missing"] }

const make = (path: string, kind: Mount["missing"]): ReadonlyArray<Made> => {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return []
  const above = make(dirname(path), "directory")
  try {
    if (kind === "directory") mkdirSync(path)
    else closeSync(openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644))
  } catch (error) {
    if (systemCode(error) === "EEXIST") return above
    throw error
  }
  return [...above, { path, kind }]
}

const isEmptyFile = (path: string): boolean => {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  return stats?.isFile() === true && stats.size === 0
}

const unmake = ({ path, kind }: Made): void => {
  try {
    if (kind === "directory") rmdirSync(path)
    else if (isEmptyFile(path)) unlinkSync(path)
  } catch (error) {
    // Someone has put something there meanwhile, or taken it away: it is theirs.
    if (!["ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR"].includes(systemCode(error))) throw error
  }
}

/**
 * Places for mounts over what is missing. Something has to be there while any command runs: were it removed under a
 * running one, that one's mount would go with it, and the command could make what it likes there.
 */
export class MountPoints {
  readonly #made: Array<Made> = []
  #users = 0

  async during<A>(mounts: ReadonlyArray<Mount>, use: () => Promise<A>): Promise<A> {
    this.#users++
    try {
      for (const { path, missing } of mounts) this.#made.push(...make(path, missing))
      return await use()
    } finally {
      if (--this.#users === 0) for (const made of this.#made.splice(0).toReversed()) unmake(made)
    }
  }
}
