import { fitted, folded } from "./Lines.ts"
import { terminalLimits, type ToolItem } from "./TerminalState.ts"
import type { Style, Theme } from "./Theme.ts"

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const textOf = (value: unknown, field: string): string => {
  const found = isRecord(value) ? value[field] : undefined
  return typeof found === "string" ? found : ""
}

const linesOf = (text: string): ReadonlyArray<string> => {
  const lines = text.split("\n")
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines
}

const sameAtStart = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): number => {
  const end = Math.min(a.length, b.length)
  const differs = a.slice(0, end).findIndex((line, index) => line !== b[index])
  return differs < 0 ? end : differs
}

/** One replacement as lines of a unified diff, with at most one line of context around it. */
const replaced = (oldText: string, newText: string): ReadonlyArray<string> => {
  const [before, after] = [linesOf(oldText), linesOf(newText)]
  const start = sameAtStart(before, after)
  const end = sameAtStart(before.slice(start).toReversed(), after.slice(start).toReversed())
  const [first, last] = [before.slice(0, start), before.slice(before.length - end)]
  return [
    ...first.slice(-1).map((line) => ` ${line}`),
    ...before.slice(start, before.length - end).map((line) => `-${line}`),
    ...after.slice(start, after.length - end).map((line) => `+${line}`),
    ...last.slice(0, 1).map((line) => ` ${line}`)
  ]
}

/**
 * The changes of a call, as lines of a unified diff: the tool's own for a call made here, else derived from its
 * arguments.
 */
export const diffOf = (item: ToolItem): ReadonlyArray<string> => {
  const own = textOf(item.result, "diff")
  if (own !== "") return linesOf(own).filter((line) => !/^(---|\+\+\+) /.test(line))
  if (!isRecord(item.args)) return []
  if (item.tool === "write") return linesOf(textOf(item.args, "content")).map((line) => `+${line}`)
  const { edits } = item.args
  if (item.tool !== "edit" || !Array.isArray(edits)) return []
  return edits.flatMap((edit, index) => [
    ...(index === 0 ? [] : ["@@"]),
    ...replaced(textOf(edit, "oldText"), textOf(edit, "newText"))
  ])
}

/** `+3 −1` */
export const diffSize = (diff: ReadonlyArray<string>): string => {
  const count = (sign: string): number => diff.filter((line) => line.startsWith(sign)).length
  return `+${count("+")} −${count("-")}`
}

const colorOf = (line: string, theme: Theme): Style =>
  line.startsWith("+")
    ? theme.good
    : line.startsWith("-")
      ? theme.bad
      : line.startsWith("@@")
        ? theme.accent
        : theme.dim

/** A diff as it is drawn; unless it is to be whole, its beginning. */
export const drawDiff = (
  diff: ReadonlyArray<string>,
  theme: Theme,
  width: number,
  whole: boolean
): ReadonlyArray<string> => {
  const shown = whole ? diff : diff.slice(0, terminalLimits.diffLines)
  const lines = shown.flatMap((line) => {
    const color = colorOf(line, theme)
    return whole ? folded(line, width).map(color) : [color(fitted(line, width))]
  })
  const more = diff.length - shown.length
  return more === 0 ? lines : [...lines, theme.dim(`… ${more} more lines (Ctrl-O shows all)`)]
}
