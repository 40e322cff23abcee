import { randomBytes } from "node:crypto"
import { lstatSync, renameSync } from "node:fs"
import { systemCode } from "../tools/ToolFailure.ts"
import type { HeldDirectory, Jail } from "./Jail.ts"
import { isGitName } from "./ProtectedPaths.ts"

const holding = <A>(directory: HeldDirectory, use: (directory: HeldDirectory) => A): A => {
  try {
    return use(directory)
  } finally {
    directory.close()
  }
}

const descend = <A>(
  from: HeldDirectory,
  names: ReadonlyArray<string>,
  use: (directory: HeldDirectory) => A
): A => {
  const [name, ...rest] = names
  return holding(from, () => (name === undefined ? use(from) : descend(from.enter(name), rest, use)))
}

const rename = (directory: HeldDirectory, name: string): string => {
  const other = `set-aside-${randomBytes(4).toString("hex")}-${name}`
  directory.verify()
  renameSync(directory.at(name), directory.at(other))
  return other
}

/** A directory `.git` is a repository under any name: git has to find no HEAD in it. */
const disarm = (directory: HeldDirectory, name: string): void => {
  if (!lstatSync(directory.at(name)).isDirectory()) return
  holding(directory.enter(name), (repository) => {
    if (lstatSync(repository.at("HEAD"), { throwIfNoEntry: false }) !== undefined) rename(repository, "HEAD")
  })
}

/**
 * Gives what lies at a path of the workspace a name that no program looks for; nothing is deleted, it may be the user's own.
 * No link is followed on the way. Returns the new path below the root; undefined where nothing is there any more, or where
 * the system does not let it be renamed.
 */
export const setAside = (jail: Jail, names: ReadonlyArray<string>): string | undefined => {
  const name = names.at(-1) ?? ""
  try {
    return descend(jail.enterRoot(), names.slice(0, -1), (directory) => {
      if (isGitName(name)) disarm(directory, name)
      return [...names.slice(0, -1), rename(directory, name)].join("/")
    })
  } catch (error) {
    if (systemCode(error) === "") throw error
    return undefined
  }
}
