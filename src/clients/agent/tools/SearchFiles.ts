import { closeSync, readFileSync } from "node:fs"
import picomatch from "picomatch"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { EntriesResult, GlobParams, GrepParams, GrepResult } from "#schemas/agents/ToolCall.ts"
import { locate, openFile, statOf, type Place, type Workspace } from "../boundary/Walk.ts"
import { partsOf, shown, type Parts } from "../boundary/WorkspacePath.ts"
import { capped } from "./ListDirectory.ts"
import { systemCode, ToolFailure } from "./ToolFailure.ts"
import { traverse, type Tally } from "./Traversal.ts"

/** Larger files are left out of a search. */
const maxSearchedBytes = 8 * 1024 * 1024

type Matches = (parts: Parts) => boolean

/** A glob without a slash is matched against the name alone, one with a slash against the path from `base`. */
const globOf = (pattern: string, base: number): Matches => {
  const relative = pattern.replace(/^\.?\//, "")
  const matches = picomatch(relative, { dot: true })
  const isName = !relative.includes("/")
  return (parts) => matches(isName ? (parts.at(-1) ?? "") : parts.slice(base).join("/"))
}

/** fs.glob. */
export const globFiles = (
  workspace: Workspace,
  { pattern, path = ".", limit = agentLimits.globEntries }: typeof GlobParams.Type
): typeof EntriesResult.Type => {
  const base = partsOf(workspace.jail.root, path)
  const tally: Tally = { visited: 0, isCut: false }
  const found: Array<string> = []
  let matches: Matches | undefined
  for (const { parts, isDirectory, directory } of traverse(workspace, base, tally)) {
    matches ??= globOf(pattern, directory.parts.length)
    if (!matches(parts)) continue
    found.push(isDirectory ? `${shown(parts)}/` : shown(parts))
    if (found.length > limit) break
  }
  const { kept, truncated } = capped(found, limit)
  return { entries: kept, truncated: truncated || tally.isCut }
}

const expression = ({ pattern, literal = false, ignoreCase = false }: typeof GrepParams.Type): RegExp => {
  if (literal) return new RegExp(pattern.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&"), ignoreCase ? "i" : "")
  // Models write (?i) as ripgrep has it.
  const inline = pattern.startsWith("(?i)")
  try {
    return new RegExp(inline ? pattern.slice(4) : pattern, ignoreCase || inline ? "i" : "")
  } catch (error) {
    throw new ToolFailure("invalid_params", error instanceof Error ? error.message : String(error))
  }
}

/** The text of a file that is open to a search; undefined for what is too large or not text. */
const searchable = (place: Place): string | undefined => {
  try {
    const { fd, stats } = openFile(place)
    try {
      if (stats.size > maxSearchedBytes) return undefined
      const bytes = readFileSync(fd)
      return bytes.length > maxSearchedBytes || bytes.includes(0) ? undefined : bytes.toString("utf8")
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (error instanceof ToolFailure || systemCode(error) !== "") return undefined
    throw error
  }
}

const cutLine = (line: string): string => {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line
  return text.length > agentLimits.grepLineCharacters
    ? `${text.slice(0, agentLimits.grepLineCharacters)}…`
    : text
}

/** The matching lines of one text as grep prints them, each with the lines around it; `most` of them at most. */
const matchesIn = (
  path: string,
  text: string,
  wanted: RegExp,
  { context, most }: { readonly context: number; readonly most: number }
): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = text.endsWith("\n") ? text.slice(0, -1).split("\n") : text.split("\n")
  const found: Array<ReadonlyArray<string>> = []
  const around = (at: number): string => `${path}-${at + 1}- ${cutLine(lines[at] ?? "")}`
  let next = 0
  for (const [at, line] of lines.entries()) {
    if (found.length === most) break
    if (!wanted.test(line)) continue
    const printed: Array<string> = []
    for (let before = Math.max(next, at - context); before < at; before++) printed.push(around(before))
    printed.push(`${path}:${at + 1}: ${cutLine(line)}`)
    const end = Math.min(lines.length, at + 1 + context)
    for (next = at + 1; next < end && !wanted.test(lines[next] ?? ""); next++) printed.push(around(next))
    found.push(printed)
  }
  return found
}

/** The files that grep looks into: one that was named, or those of a directory. */
function* filesOf(
  workspace: Workspace,
  path: string,
  tally: Tally
): Generator<{ readonly place: Place; readonly parts: Parts; readonly base: number }, void> {
  const place = locate(workspace, partsOf(workspace.jail.root, path), "read")
  try {
    const { directory, name } = place
    const parts = name === "." ? directory.parts : [...directory.parts, name]
    if (name !== "." && statOf(place)?.isDirectory() !== true) {
      if (statOf(place) === undefined) throw new ToolFailure("not_found", `${path} does not exist`)
      yield { place, parts, base: directory.parts.length }
      return
    }
    for (const { isDirectory, directory, name, parts: found } of traverse(workspace, parts, tally))
      if (!isDirectory) yield { place: { directory, name }, parts: found, base: parts.length }
  } finally {
    place.directory.close()
  }
}

/** fs.grep. */
export const grepFiles = (workspace: Workspace, params: typeof GrepParams.Type): typeof GrepResult.Type => {
  const { path = ".", glob, context = 0, limit = agentLimits.grepMatches } = params
  const wanted = expression(params)
  const tally: Tally = { visited: 0, isCut: false }
  const found: Array<ReadonlyArray<string>> = []
  let bytes = 0
  let matches: Matches | undefined
  for (const { place, parts, base } of filesOf(workspace, path, tally)) {
    if (glob !== undefined) matches ??= globOf(glob, base)
    if (matches?.(parts) === false) continue
    const text = searchable(place)
    if (text === undefined || text === "") continue
    // One more than was asked for shows that there are more.
    const here = matchesIn(shown(parts), text, wanted, { context, most: limit + 1 - found.length })
    found.push(...here)
    bytes += here.flat().join("\n").length
    if (found.length > limit || bytes > agentLimits.textBytes) break
  }
  const printed = found.slice(0, limit).flat()
  const { kept, truncated } = capped(printed, printed.length)
  return { matches: kept, truncated: truncated || found.length > limit || tally.isCut }
}
