import { closeSync, constants, openSync } from "node:fs"
import type { HeldDirectory, Jail } from "./Jail.ts"
import type { Parts } from "./WorkspacePath.ts"

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants
const directoryOnly = O_RDONLY | O_DIRECTORY | O_NOFOLLOW

/**
 * The kernel resolves `/proc/self/fd/<number>/<name>` from the open directory itself, so each step of a walk is one
 * `openat` of one name. With O_NOFOLLOW no link is ever passed, however quickly names are exchanged.
 */
const held = (fd: number, parts: Parts): HeldDirectory => {
  const self = `/proc/self/fd/${fd}`
  return {
    parts,
    self,
    fd,
    at: (name) => `${self}/${name}`,
    enter: (name) => held(openSync(`${self}/${name}`, directoryOnly), [...parts, name]),
    verify: () => undefined,
    close: () => closeSync(fd)
  }
}

/** `from`: the number under which this process already holds the root. */
export const linuxJail = (root: string, from?: number): Jail => {
  const fd = openSync(from === undefined ? root : `/proc/self/fd/${from}/.`, directoryOnly)
  return {
    root,
    handle: { kind: "linux", root, fd },
    enterRoot: () => held(openSync(`/proc/self/fd/${fd}/.`, directoryOnly), []),
    close: () => closeSync(fd)
  }
}
