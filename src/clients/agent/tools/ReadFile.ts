import { closeSync, readSync } from "node:fs"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { ReadParams, ReadResult } from "#schemas/agents/ToolCall.ts"
import { locate, openFile, type Place, type Workspace } from "../boundary/Walk.ts"
import { partsOf, shown } from "../boundary/WorkspacePath.ts"
import { ToolFailure } from "./ToolFailure.ts"

/** Files above this are for commands such as sed and tail. */
const maxFileBytes = 32 * 1024 * 1024

/** The bytes of an open file, even if its size has changed. */
const readAll = (fd: number, tooLarge: ToolFailure, maxBytes: number): Buffer => {
  const pieces: Array<Buffer> = []
  let total = 0
  for (;;) {
    const piece = Buffer.allocUnsafe(64 * 1024)
    const bytes = readSync(fd, piece, 0, piece.length, null)
    if (bytes === 0) return Buffer.concat(pieces, total)
    total += bytes
    if (total > maxBytes) throw tooLarge
    pieces.push(piece.subarray(0, bytes))
  }
}

/** A text file as it is, byte order mark included. Anything but UTF-8 without NUL is `binary`. */
export const readText = (place: Place, maxBytes = maxFileBytes): string => {
  const path = shown([...place.directory.parts, place.name])
  const tooLarge = new ToolFailure("too_large", `${path} is larger than ${maxBytes / 1024 / 1024} MiB`)
  const { fd, stats } = openFile(place)
  try {
    if (stats.size > maxBytes) throw tooLarge
    const bytes = readAll(fd, tooLarge, maxBytes)
    if (bytes.includes(0)) throw new ToolFailure("binary", `${path} is not a text file`)
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    if (error instanceof TypeError) throw new ToolFailure("binary", `${path} is not a text file in UTF-8`)
    throw error
  } finally {
    closeSync(fd)
  }
}

/** The start of each line; a line end at the very end starts none. */
const lineStarts = (text: string): ReadonlyArray<number> => {
  const starts = text === "" ? [] : [0]
  for (let at = text.indexOf("\n"); at >= 0 && at + 1 < text.length; at = text.indexOf("\n", at + 1))
    starts.push(at + 1)
  return starts
}

/** The longest start of a text that has at most so many bytes, cut between characters. */
export const headBytes = (text: string, bytes: number): string => {
  const whole = Buffer.from(text)
  if (whole.length <= bytes) return text
  let end = bytes
  while (end > 0 && ((whole[end] ?? 0) & 0xc0) === 0x80) end--
  return whole.toString("utf8", 0, end)
}

/** fs.read. */
export const readFile = (workspace: Workspace, params: typeof ReadParams.Type): typeof ReadResult.Type => {
  const place = locate(workspace, partsOf(workspace.jail.root, params.path), "read")
  try {
    return linesOf(readText(place), params)
  } finally {
    place.directory.close()
  }
}

/** The lines that were asked for, within the caps. */
export const linesOf = (
  text: string,
  { offset = 1, limit = agentLimits.textLines, path }: typeof ReadParams.Type
): typeof ReadResult.Type => {
  const starts = lineStarts(text)
  const totalLines = starts.length
  const first = offset - 1
  if (first > 0 && first >= totalLines)
    throw new ToolFailure("invalid_params", `${path} has ${totalLines} lines; line ${offset} is past its end`)
  const startOf = (line: number): number => starts[line] ?? text.length
  const wanted = Math.min(totalLines, first + Math.min(limit, agentLimits.textLines))
  let end = first
  let bytes = 0
  while (end < wanted) {
    bytes += Buffer.byteLength(text.slice(startOf(end), startOf(end + 1)))
    if (bytes > agentLimits.textBytes) break
    end++
  }
  // A first line that is too long by itself is given as far as it goes.
  const isCut = end === first && end < wanted
  const content = isCut
    ? headBytes(text.slice(startOf(first), startOf(first + 1)), agentLimits.textBytes)
    : text.slice(startOf(first), startOf(end))
  const next = isCut ? first + 1 : end
  return {
    content,
    totalLines,
    truncated: isCut || next < totalLines,
    ...(next < totalLines && { nextOffset: next + 1 })
  }
}
