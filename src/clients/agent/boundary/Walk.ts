import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  type Stats
} from "node:fs"
import { systemCode, ToolFailure } from "../tools/ToolFailure.ts"
import type { HeldDirectory, Jail } from "./Jail.ts"
import { requireOpen, requireUnsealed, requireWritable, type Protection } from "./ProtectedPaths.ts"
import { partsOfLink, shown, type Parts } from "./WorkspacePath.ts"

/** As many links as Linux follows for one path (path_resolution(7)). */
export const maxLinks = 40

/** A jail, and its paths that the tools leave alone. */
export interface Workspace {
  readonly jail: Jail
  readonly protection: Protection
}

/** `change` and `write` refuse protected names; `write` also makes the directories on the way that are missing. */
type Purpose = "read" | "change" | "write"

/** A name in an open directory, which its receiver closes. `name` was not a link when it was found. */
export interface Place {
  readonly directory: HeldDirectory
  readonly name: string
}

/** The target of a link; undefined of anything that is not one. */
export const linkTarget = (directory: HeldDirectory, name: string): string | undefined => {
  try {
    return readlinkSync(directory.at(name))
  } catch (error) {
    // EINVAL is what the system says of anything that is not a link.
    if (["EINVAL", "ENOENT", "ENOTDIR"].includes(systemCode(error))) return undefined
    throw error
  }
}

const enterOrMake = (directory: HeldDirectory, name: string): HeldDirectory => {
  try {
    return directory.enter(name)
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error
    mkdirSync(directory.at(name))
    return directory.enter(name)
  }
}

/** Goes down to the last name, or to the first link: that gives the path to take instead. */
const walkOnce = (
  { jail, protection }: Workspace,
  parts: Parts,
  purpose: Purpose
): { readonly place: Place } | { readonly instead: Parts } => {
  let directory = jail.enterRoot()
  try {
    for (const [index, name] of parts.entries()) {
      const target = linkTarget(directory, name)
      if (target !== undefined) {
        const instead = partsOfLink(jail.root, directory.parts, name, target)
        directory.close()
        return { instead: [...instead, ...parts.slice(index + 1)] }
      }
      if (purpose === "read") requireOpen(protection, [...directory.parts, name])
      else requireWritable(protection, directory, name)
      if (index === parts.length - 1) return { place: { directory, name } }
      const next = purpose === "write" ? enterOrMake(directory, name) : directory.enter(name)
      directory.close()
      directory = next
    }
    return { place: { directory, name: "." } }
  } catch (error) {
    directory.close()
    throw error
  }
}

/**
 * Finds the directory that holds what `parts` names. Links that stay in the workspace are followed, by walking again from
 * its root.
 */
export const locate = (workspace: Workspace, parts: Parts, purpose: Purpose): Place => {
  let wanted = parts
  for (let links = 0; links <= maxLinks; links++) {
    // Paths forbidden by their names alone are refused before any directory is made.
    if (purpose === "read") requireOpen(workspace.protection, wanted)
    else requireUnsealed(workspace.protection, wanted)
    const found = walkOnce(workspace, wanted, purpose)
    if ("place" in found) return found.place
    wanted = found.instead
  }
  throw new ToolFailure("not_found", `${shown(parts)} is a link to itself`)
}

/** The directory that `parts` names; its receiver closes it. */
export const openDirectory = (workspace: Workspace, parts: Parts): HeldDirectory => {
  const { directory, name } = locate(workspace, parts, "read")
  if (name === ".") return directory
  try {
    return directory.enter(name)
  } finally {
    directory.close()
  }
}

const kindOf = (stats: Stats): string =>
  stats.isDirectory()
    ? "a directory"
    : stats.isFIFO()
      ? "a named pipe"
      : stats.isSocket()
        ? "a socket"
        : stats.isSymbolicLink()
          ? "a link that was just put there"
          : "a device"

export const requireRegular = (stats: Stats, parts: Parts): void => {
  if (stats.isFile()) return
  throw new ToolFailure("invalid_params", `${shown(parts)} is ${kindOf(stats)}, not a file`)
}

/** The status of a name, without following it; undefined when there is nothing. */
export const statOf = ({ directory, name }: Place): Stats | undefined =>
  lstatSync(directory.at(name), { throwIfNoEntry: false })

/** Opens a regular file, never through a link, and checks the opened file. Its receiver closes it. */
export const openFile = ({ directory, name }: Place): { readonly fd: number; readonly stats: Stats } => {
  const parts = [...directory.parts, name]
  // Opening a device can do things, so it is looked at first; a pipe put there after that look must not block.
  requireRegular(lstatSync(directory.at(name)), parts)
  const { O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
  const fd = openSync(directory.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
  try {
    const stats = fstatSync(fd)
    requireRegular(stats, parts)
    directory.verify({ name, stats })
    return { fd, stats }
  } catch (error) {
    closeSync(fd)
    throw error
  }
}
