import { isAbsolute, join } from "node:path"
import { ToolFailure } from "../tools/ToolFailure.ts"

/** Names from a workspace's root down: no "", ".", ".." among them. Empty: the root itself. */
export type Parts = ReadonlyArray<string>

/** Bytes of one name. Source: NAME_MAX of Linux and macOS. */
const nameBytes = 255
/** More directories than any project has; the walk opens each of them. */
const maxDepth = 128

export const outside = (path: string): ToolFailure =>
  new ToolFailure("outside_workspace", `${path} is not in the workspace`)

/** The names that are left when `.`, `..` and doubled slashes are worked off; undefined when they lead above the root. */
const normalized = (names: Parts): Parts | undefined => {
  const parts: Array<string> = []
  for (const name of names) {
    if (name === "" || name === ".") continue
    if (name !== "..") parts.push(name)
    else if (parts.pop() === undefined) return undefined
  }
  return parts
}

const below = (root: string, path: string): Parts | undefined => {
  if (path !== root && !path.startsWith(root.endsWith("/") ? root : `${root}/`)) return undefined
  return normalized(path.slice(root.length).split("/"))
}

/**
 * A path as the server wrote it, relative to `root` or absolute in it. This only reads the text: that no link leads out
 * is for the walk to hold.
 */
export const partsOf = (root: string, path: string): Parts => {
  if (path.includes("\0")) throw new ToolFailure("invalid_params", "A path has no NUL characters")
  const parts = isAbsolute(path) ? below(root, path) : normalized(path.split("/"))
  if (parts === undefined) throw outside(path)
  if (parts.length > maxDepth) throw new ToolFailure("invalid_params", `A path has at most ${maxDepth} names`)
  if (parts.some((name) => Buffer.byteLength(name) > nameBytes))
    throw new ToolFailure("invalid_params", `A name in a path has at most ${nameBytes} bytes`)
  return parts
}

/** The target of a link that lies in `directory` (itself free of links); it has to stay in the workspace. */
export const partsOfLink = (root: string, directory: Parts, name: string, target: string): Parts => {
  const parts = isAbsolute(target) ? below(root, target) : normalized([...directory, ...target.split("/")])
  if (parts === undefined || target.includes("\0")) {
    const link = shown([...directory, name])
    throw new ToolFailure("outside_workspace", `${link} is a link that leads out of the workspace`)
  }
  return parts
}

/** A path as the model sees it. */
export const shown = (parts: Parts): string => (parts.length === 0 ? "." : join(...parts))
