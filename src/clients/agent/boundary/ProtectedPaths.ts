import { existsSync } from "node:fs"
import { denied } from "../tools/ToolFailure.ts"
import type { HeldDirectory } from "./Jail.ts"
import { shown, type Parts } from "./WorkspacePath.ts"

/** The paths of a workspace that the tools leave alone. Parts are folded; the paths need not exist. */
export interface Protection {
  /** directories of the client itself: neither read nor written */
  readonly closed: ReadonlyArray<Parts>
  /** paths that git or another program runs by itself, such as the directory of `core.hooksPath`: read only */
  readonly sealed: ReadonlyArray<Parts>
  /** files that a repository's configuration has git run or read, such as the script of a filter: asked for */
  readonly named: ReadonlyArray<Parts>
}

/** Letters that HFS+ leaves out of names. Source: git's utf8.c, next_hfs_char. */
const unseen = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu

/** Nearly all names are: for these there is nothing to compose. */
const plain = /^[\x20-\x7e]*$/

/** One spelling for all that a system which ignores case, or composes letters, takes for one name. */
export const folded = (name: string): string =>
  plain.test(name) ? name.toLowerCase() : name.replace(unseen, "").normalize("NFC").toLowerCase()

const covers = (list: ReadonlyArray<Parts>, parts: Parts): boolean =>
  list.some(
    (entry) =>
      entry.length <= parts.length && entry.every((name, index) => name === folded(parts[index] ?? ""))
  )

/**
 * Whether some file system takes the name for `.git`: in other letters, with unseen ones, with dots or blanks after it,
 * as a stream of it, or as its short name. Source: git's path.c, is_ntfs_dotgit and is_hfs_dotgit.
 */
export const isGitName = (name: string): boolean => /^(\.git|git~\d+)[. ]*(:.*)?$/su.test(folded(name))

/**
 * git takes every directory with the names of one line for a repository, and runs what its configuration says; `commondir`
 * says where the rest is. Source: git's setup.c, is_git_directory.
 */
const shapesOfRepository = [
  ["HEAD", "objects", "refs"],
  ["HEAD", "commondir"]
]
export const signsOfRepository = [...new Set(shapesOfRepository.flat())]

/** Whether a directory with these names, in any case of letters, is a repository for git. */
export const isShapedAsRepository = (has: (sign: string) => boolean): boolean =>
  shapesOfRepository.some((signs) => signs.every(has))

const wouldBeRepository = (directory: HeldDirectory, name: string): boolean =>
  isShapedAsRepository((sign) => folded(name) === folded(sign) || existsSync(directory.at(sign)))

export const requireOpen = (protection: Protection, parts: Parts): void => {
  if (covers(protection.closed, parts))
    throw denied(`${shown(parts)} belongs to the agent client; tools neither read nor change it`)
}

/** Throws if a path, or one below it, must not be made or changed, by its names alone. */
export const requireUnsealed = (protection: Protection, parts: Parts): void => {
  requireOpen(protection, parts)
  if (parts.some(isGitName))
    throw denied(`${shown(parts)} belongs to git: hooks and configuration there run by themselves`)
  if (covers(protection.sealed, parts))
    throw denied(`${shown(parts)} holds the hooks of this repository, which run by themselves`)
}

/** Before anything named `name` is made or changed in a directory, or below it: also what lies there. */
export const requireWritable = (protection: Protection, directory: HeldDirectory, name: string): void => {
  requireUnsealed(protection, [...directory.parts, name])
  if (wouldBeRepository(directory, name))
    throw denied(`${shown(directory.parts)} is, or would be, a git repository; only git writes there`)
}
