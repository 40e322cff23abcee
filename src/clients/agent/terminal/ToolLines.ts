import { visibleWidth } from "@earendil-works/pi-tui"
import { diffOf, diffSize, drawDiff } from "./DiffLines.ts"
import { seconds } from "./Figures.ts"
import { fitted, folded, lastLines, wrapped } from "./Lines.ts"
import { safeLine } from "./SafeText.ts"
import { terminalLimits, type ToolItem, type ToolProgress } from "./TerminalState.ts"
import type { Theme } from "./Theme.ts"

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const word = (fields: Fields, name: string): string => {
  const value = fields[name]
  return typeof value === "string" || typeof value === "number" ? safeLine(String(value)).trim() : ""
}

/** The subject of a call, from its arguments, which may be anything. */
export const subjectOf = ({ args, tool }: ToolItem): string => {
  const fields = fieldsOf(args)
  const path = word(fields, "path")
  switch (tool) {
    case "bash":
      return word(fields, "command")
    case "find":
      return `${word(fields, "pattern")}${path === "" ? "" : ` in ${path}`}`
    case "grep":
      return `${word(fields, "pattern")}${path === "" ? "" : ` in ${path}`}${word(fields, "glob") === "" ? "" : ` (${word(fields, "glob")})`}`
    case "ls":
      return path === "" ? "." : path
    case "read":
      return `${path}${word(fields, "offset") === "" ? "" : ` from line ${word(fields, "offset")}`}`
    default:
      return path === "" && tool !== "write" && tool !== "edit" ? safeLine(JSON.stringify(args) ?? "") : path
  }
}

const size = (fields: Fields, name: string, one: string, many: string): ReadonlyArray<string> => {
  const value = fields[name]
  const count = Array.isArray(value) ? value.length : value
  return typeof count === "number" ? [`${count} ${count === 1 ? one : many}`] : []
}

/** The outcome of a call, in a few words. */
const outcomeOf = (item: ToolItem): ReadonlyArray<string> => {
  const result = fieldsOf(item.result)
  switch (item.tool) {
    case "bash":
      return typeof result.exitCode === "number"
        ? result.exitCode === 0
          ? []
          : [`exit ${result.exitCode}`]
        : result.signal === undefined
          ? []
          : [word(result, "signal")]
    case "read":
      return size(result, "totalLines", "line", "lines")
    case "ls":
    case "find":
      return size(result, "entries", "entry", "entries")
    case "grep":
      return size(result, "matches", "match", "matches")
    case "edit":
      return [diffSize(diffOf(item))]
    case "write":
      return [...(result.created === true ? ["new"] : []), ...size(result, "bytes", "byte", "bytes")]
    default:
      return []
  }
}

const signs: Readonly<
  Record<ToolProgress, readonly [string, keyof Theme & ("dim" | "accent" | "good" | "bad" | "warning")]>
> = {
  called: ["·", "dim"],
  asking: ["?", "warning"],
  running: ["▸", "accent"],
  ok: ["✓", "good"],
  failed: ["✗", "bad"],
  denied: ["⊘", "warning"]
}

const wordsOf: Readonly<Record<ToolProgress, ReadonlyArray<string>>> = {
  called: [],
  asking: ["needs your word"],
  running: ["running"],
  ok: [],
  failed: ["failed"],
  denied: ["denied"]
}

/** A command that ran and says that it failed is shown as that, though the tool did what it should. */
const failedCommand = (item: ToolItem): boolean => {
  const { exitCode } = fieldsOf(item.result)
  return item.tool === "bash" && item.progress === "ok" && exitCode !== undefined && exitCode !== 0
}

const headline = (item: ToolItem, theme: Theme, width: number): string => {
  const [sign, color] = failedCommand(item) ? signs.failed : signs[item.progress]
  const ended = item.progress === "ok" || item.progress === "failed" || item.progress === "denied"
  const facts = [
    ...wordsOf[item.progress],
    ...(item.progress === "ok" ? outcomeOf(item) : []),
    ...(ended && item.durationMillis >= 1 ? [seconds(item.durationMillis)] : [])
  ].map((fact) => ` · ${fact}`)
  const name = item.tool === "" ? "tool" : safeLine(item.tool)
  const end = facts.join("")
  const room = width - visibleWidth(name) - visibleWidth(end) - 4
  const subject = fitted(subjectOf(item), Math.max(8, room))
  return fitted(`${theme[color](sign)} ${theme.bold(name)} ${subject}${theme.dim(end)}`, width)
}

const drawOutput = (item: ToolItem, theme: Theme, width: number, whole: boolean): ReadonlyArray<string> => {
  const text = item.output === "" ? textOf(item) : item.output
  const { before, lines } = lastLines(text, whole ? 500 : terminalLimits.outputLines)
  const bar = theme.dim("│ ")
  return [
    ...(before === 0 || !whole ? [] : [`${bar}${theme.dim(`… ${before} lines before`)}`]),
    ...lines.flatMap((line) =>
      (whole ? folded(line, width - 2) : [fitted(line, width - 2)]).map((part) => `${bar}${theme.dim(part)}`)
    )
  ]
}

/** A tool's output to the model, as far as this machine knows it. */
const textOf = (item: ToolItem): string => {
  const { content, entries, matches, output } = fieldsOf(item.result)
  const text = output ?? content ?? matches ?? entries
  return typeof text === "string" ? text : Array.isArray(text) ? text.join("\n") : ""
}

interface ToolDrawing {
  readonly theme: Theme
  readonly width: number
  /** everything that is known of the call */
  readonly whole: boolean
  /** the end of its output while it runs */
  readonly tail: boolean
}

/** A tool call as it is drawn. Nothing in it changes with time alone: lines scrolled away cannot be drawn again. */
export const drawTool = (
  item: ToolItem,
  { tail, theme, whole, width }: ToolDrawing
): ReadonlyArray<string> => {
  const inner = width - 2
  const diff = item.progress === "failed" || item.progress === "denied" ? [] : diffOf(item)
  const output = whole || tail || failedCommand(item)
  return [
    headline(item, theme, width),
    ...(item.error === ""
      ? []
      : wrapped(item.error, inner)
          .slice(0, whole ? 200 : 3)
          .map((line) => `  ${theme.bad(line)}`)),
    ...drawDiff(diff, theme, inner, whole).map((line) => `  ${line}`),
    ...(output ? drawOutput(item, theme, inner, whole).map((line) => `  ${line}`) : [])
  ]
}
