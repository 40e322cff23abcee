import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { EditParams, EditResult } from "#schemas/agents/ToolCall.ts"
import { locate, type Workspace } from "../boundary/Walk.ts"
import { partsOf, shown } from "../boundary/WorkspacePath.ts"
import { headBytes, readText } from "./ReadFile.ts"
import { ToolFailure } from "./ToolFailure.ts"
import { unifiedDiff, type Replacement } from "./UnifiedDiff.ts"
import { replaceFile } from "./WriteFile.ts"
import { askForHardLink, askForSelfRunning, requireAsked, type AskWrite } from "./WriteQuestion.ts"

/** Larger files are for commands such as sed. */
const maxEditedBytes = 4 * 1024 * 1024

type Params = typeof EditParams.Type

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ToolFailure("invalid_params", `edits is a text that is not JSON: ${String(error)}`)
  }
}

/** Models also write `edits` as JSON in a string, as one object, or oldText and newText beside the path. */
export const tolerantEditParams = (params: unknown): unknown => {
  if (!isRecord(params)) return params
  const { edits: given, oldText, newText, ...rest } = params
  const value = typeof given === "string" ? parsed(given) : given
  const edits = value === undefined ? [] : isRecord(value) ? [value] : value
  if (oldText === undefined || !Array.isArray(edits)) return { ...rest, edits }
  return { ...rest, edits: [...edits, { oldText, newText }] }
}

const unix = (text: string): string => text.replaceAll("\r\n", "\n")

/** A text with plain line ends, and the place in the text as it is of each place in that. */
const withPlainLines = (
  text: string
): { readonly plain: string; readonly original: (at: number) => number } => {
  if (!text.includes("\r\n")) return { plain: text, original: (at) => at }
  const dropped: Array<number> = []
  for (let at = text.indexOf("\r\n"); at >= 0; at = text.indexOf("\r\n", at + 2))
    dropped.push(at - dropped.length)
  const original = (at: number): number => {
    let low = 0
    let high = dropped.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((dropped[middle] ?? 0) < at) low = middle + 1
      else high = middle
    }
    return at + low
  }
  return { plain: unix(text), original }
}

/** Whether new lines end in CRLF: as most lines of the file do. */
const endsInCrlf = (text: string): boolean => {
  const crlf = text.split("\r\n").length - 1
  return crlf > 0 && crlf * 2 >= text.split("\n").length - 1
}

const replacementsIn = (text: string, { path, edits }: Params): ReadonlyArray<Replacement> => {
  const { plain, original } = withPlainLines(text)
  const crlf = endsInCrlf(text)
  const found = edits.map(({ oldText, newText }, index) => {
    const wanted = unix(oldText)
    const which = edits.length === 1 ? "oldText" : `oldText of edit ${index + 1}`
    if (wanted === "") throw new ToolFailure("invalid_params", `${which} is empty`)
    const at = indexOfLinear(plain, wanted, 0)
    if (at < 0) throw new ToolFailure("not_found", `${which} does not occur in ${path}; read the file again`)
    if (indexOfLinear(plain, wanted, at + 1) >= 0)
      throw new ToolFailure(
        "not_unique",
        `${which} occurs more than once in ${path}; give more of the lines around it`
      )
    const text = crlf ? unix(newText).replaceAll("\n", "\r\n") : unix(newText)
    return { start: original(at), end: original(at + wanted.length), text }
  })
  const ordered = found.toSorted((a, b) => a.start - b.start)
  for (const [index, { start }] of ordered.entries())
    if (index > 0 && start < (ordered[index - 1]?.end ?? 0))
      throw new ToolFailure("invalid_params", `Two edits of ${path} overlap; make them one`)
  return ordered
}

const applied = (text: string, replacements: ReadonlyArray<Replacement>): string => {
  let result = ""
  let at = 0
  for (const { start, end, text: replacement } of replacements) {
    result += text.slice(at, start) + replacement
    at = end
  }
  return result + text.slice(at)
}

const cut = (diff: string): string => {
  const head = headBytes(diff, agentLimits.textBytes)
  return head === diff ? diff : `${head}\n… the rest of the diff is left out\n`
}

/** fs.edit. All edits are made, or none. */
export const editFile = async (
  workspace: Workspace,
  params: Params,
  ask: AskWrite
): Promise<typeof EditResult.Type> => {
  const parts = partsOf(workspace.jail.root, params.path)
  const allowed = await askForSelfRunning(workspace, params.path, ask)
  const place = locate(workspace, parts, "change")
  try {
    requireAsked(workspace, place, allowed)
    await askForHardLink(place, ask)
    const whole = readText(place, maxEditedBytes)
    const mark = whole.startsWith("\ufeff") ? "\ufeff" : ""
    const text = whole.slice(mark.length)
    const replacements = replacementsIn(text, params)
    const after = applied(text, replacements)
    if (after === text) throw new ToolFailure("invalid_params", `The edits change nothing in ${params.path}`)
    await replaceFile(place, Buffer.from(mark + after))
    const diff = unifiedDiff(shown([...place.directory.parts, place.name]), text, replacements)
    return { diff: cut(diff), replacements: replacements.length }
  } finally {
    place.directory.close()
  }
}

/** Up to here the engine's own search takes steps in proportion to the text, for any pattern. */
const shortPattern = 200

/** For each start of the pattern, how long an earlier start of it ends there. */
const borders = (pattern: string): Int32Array => {
  const table = new Int32Array(pattern.length)
  for (let at = 1, length = 0; at < pattern.length; at++) {
    while (length > 0 && pattern[at] !== pattern[length]) length = table[length - 1] ?? 0
    if (pattern[at] === pattern[length]) length++
    table[at] = length
  }
  return table
}

/**
 * `text.indexOf(pattern, from)` in linear time (Knuth, Morris and Pratt). The engine's own needs minutes where a server that
 * wants to stop a client writes a long text of one letter, and searches it for another one.
 */
export const indexOfLinear = (text: string, pattern: string, from: number): number => {
  if (pattern.length <= shortPattern) return text.indexOf(pattern, from)
  const table = borders(pattern)
  for (let at = from, length = 0; at < text.length; at++) {
    while (length > 0 && text[at] !== pattern[length]) length = table[length - 1] ?? 0
    if (text[at] === pattern[length]) length++
    if (length === pattern.length) return at - length + 1
  }
  return -1
}
