import { closeSync, constants, fstatSync, lstatSync, openSync, realpathSync, type Stats } from "node:fs"
import { join } from "node:path"
import { ToolFailure } from "../tools/ToolFailure.ts"
import type { HeldDirectory, Jail } from "./Jail.ts"
import { shown, type Parts } from "./WorkspacePath.ts"

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants
/** macOS only: an open fails when any name of the path is a link. Source: open(2) of macOS 10.15. */
const noFollowAny = process.platform === "darwin" ? 0x20000000 : 0
const directoryOnly = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | noFollowAny

const moved = (parts: Parts): ToolFailure =>
  new ToolFailure("not_found", `${shown(parts)} was changed while it was being opened`)

const held = (root: string, fd: number, parts: Parts): HeldDirectory => {
  const self = join(root, ...parts)
  const opened = fstatSync(fd)
  const isSame = (a: Pick<Stats, "dev" | "ino">, b: Pick<Stats, "dev" | "ino">): boolean =>
    a.dev === b.dev && a.ino === b.ino
  const verify: HeldDirectory["verify"] = (file) => {
    if (file !== undefined && !isSame(lstatSync(join(self, file.name)), file.stats))
      throw moved([...parts, file.name])
    if (realpathSync(self) !== self || !isSame(lstatSync(self), opened)) throw moved(parts)
  }
  const directory: HeldDirectory = {
    parts,
    self,
    fd,
    at: (name) => join(self, name),
    enter: (name) => enter(root, [...parts, name]),
    verify,
    close: () => closeSync(fd)
  }
  return directory
}

const enter = (root: string, parts: Parts): HeldDirectory => {
  const fd = openSync(join(root, ...parts), directoryOnly)
  try {
    const directory = held(root, fd, parts)
    directory.verify()
    return directory
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/**
 * For systems without `/proc`: paths are resolved by name, and checked before and after each use. A program that runs
 * beside the client and exchanges directories within that moment could still win, on macOS for renames only.
 */
export const portableJail = (root: string): Jail => ({
  root,
  handle: { kind: "portable", root },
  enterRoot: () => enter(root, []),
  close: () => undefined
})
