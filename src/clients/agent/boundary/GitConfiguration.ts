import { closeSync, constants, existsSync, fstatSync, openSync, readSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { systemCode } from "../tools/ToolFailure.ts"
import type { GitLayout, Repository } from "./GitLayout.ts"
import { isWithin, realPath } from "./OpenWorkspace.ts"

/** So much of a configuration is read, and so many of its words looked at. */
const maxBytes = 256 * 1024
const maxWords = 2_000

/** Paths in a workspace that the configurations of its repositories have git run. */
interface Configured {
  /** directories of hooks: only git's own setup writes there */
  readonly sealed: ReadonlyArray<string>
  /** scripts and further configuration, which are the user's to change */
  readonly named: ReadonlyArray<string>
}

const textOf = (path: string): string => {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES", "ELOOP"].includes(systemCode(error))) return ""
    throw error
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) return ""
    const bytes = Buffer.alloc(Math.min(stats.size, maxBytes))
    return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, 0))
  } finally {
    closeSync(fd)
  }
}

interface Setting {
  /** without its section, in small letters */
  readonly key: string
  readonly value: string
}

const settingsOf = (text: string): ReadonlyArray<Setting> =>
  text
    .replace(/\\\r?\n/g, "")
    .split("\n")
    .flatMap((line) => {
      const [, key, value] = /^\s*(?:\[[^\]]*\])?\s*([A-Za-z][\w-]*)\s*=\s*(.*)$/.exec(line) ?? []
      return key === undefined || value === undefined ? [] : [{ key: key.toLowerCase(), value: value.trim() }]
    })

const whole = ({ value }: Setting): string => value.replace(/^"([^"]*)".*$/, "$1").replace(/\s+[#;].*$/, "")

/** Settings that name one path, there or not; in others any word may be one. */
const paths = new Set(["path", "hookspath", "fsmonitor"])

const isInside = (root: string, path: string): boolean => path !== root && isWithin(root, path)

const hooksOf = (
  root: string,
  { entry }: Repository,
  settings: ReadonlyArray<Setting>
): ReadonlyArray<string> =>
  settings
    .filter(({ key }) => key === "hookspath")
    .map((setting) => realPath(resolve(dirname(entry), whole(setting))))
    .filter((directory) => isInside(root, directory))

/** Paths are taken from the top of the working tree, those of `include.path` from the configuration's own directory. */
const namedIn = (
  root: string,
  { entry, commonDir }: Repository,
  settings: ReadonlyArray<Setting>
): ReadonlyArray<string> => {
  const words = settings
    .filter(({ key }) => key !== "hookspath" && key !== "url" && key !== "fetch" && key !== "merge")
    .flatMap((setting) => {
      const isPath = paths.has(setting.key)
      const parts = isPath ? [whole(setting)] : setting.value.split(/[\s"'`;&|()<>=!]+/)
      return parts
        .filter((word) => word !== "" && word !== "true" && word !== "false")
        .map((word) => ({ word, isPath }))
    })
    .slice(0, maxWords)
  return words.flatMap(({ word, isPath }) =>
    [dirname(entry), commonDir]
      .map((base) => resolve(base, word))
      .filter((path) => isInside(root, path) && !isWithin(commonDir, path) && (isPath || existsSync(path)))
      .map(realPath)
      .filter((path) => isInside(root, path))
  )
}

/** Reads the configurations as plain files; included ones are not followed. */
export const configuredIn = (root: string, { main, nested }: GitLayout): Configured => {
  const sealed: Array<string> = []
  const named: Array<string> = []
  for (const repository of [main, ...nested]) {
    if (repository === undefined) continue
    const { commonDir, gitDir } = repository
    const settings = [join(commonDir, "config"), join(gitDir, "config.worktree")].flatMap((path) =>
      settingsOf(textOf(path))
    )
    const hooks = hooksOf(root, repository, settings)
    sealed.push(...hooks)
    // husky has git run the scripts of `_`, and those run the ones beside it.
    named.push(...hooks.filter((path) => basename(path) === "_").map((path) => dirname(path)))
    named.push(...namedIn(root, repository, settings))
  }
  return {
    sealed: [...new Set(sealed)],
    named: [...new Set(named)].filter((path) => isInside(root, path))
  }
}
