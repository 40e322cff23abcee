import { classesOf, plainStyle, styleAfter } from "./AnsiStyle.ts"
import type { RenderedBody } from "./Body.ts"
import { withoutControls } from "./CleanText.ts"
import { MarkupWriter } from "./MarkupWriter.ts"
import { remarkOf } from "./RenderText.ts"
import { timestampLength } from "./Timestamps.ts"

/**
 * Sequences for terminals: CSI, with its parameters and its last letter; strings (OSC with titles and links, DCS, SOS, PM,
 * APC) to their end, or that of the line; all others. Every branch takes what it looked at. Source: ECMA-48, 5.
 */
const sequence =
  // oxlint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~]?)|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?|[\u0080-\u009f]/g

interface Run {
  /** classes of its colours; "" for none */
  readonly name: string
  readonly text: string
}

/** A log: colours of terminals stay, their other sequences go, timestamps and levels are marked. */
export const renderLog = (text: string): RenderedBody => {
  const out = new MarkupWriter()
  out.raw('<pre class="log">')
  let style = plainStyle
  let name = ""
  for (const line of text.split(/\r\n?|\n/)) {
    out.beginLine()
    const runs: Array<Run> = []
    let from = 0
    for (const match of line.matchAll(sequence)) {
      if (match.index > from) runs.push({ name, text: withoutControls(line.slice(from, match.index)) })
      from = match.index + match[0].length
      if (match[2] !== "m") continue
      style = styleAfter(style, match[1] ?? "")
      name = classesOf(style)
    }
    if (from < line.length) runs.push({ name, text: withoutControls(line.slice(from)) })
    writeLine(out, joined(runs))
  }
  return { format: "log", html: `${out.html}</pre>`, remark: remarkOf(out) }
}

/** Neighbours of one colour are one: a dropped sequence parts no words. */
const joined = (runs: ReadonlyArray<Run>): ReadonlyArray<Run> => {
  const kept: Array<Array<string>> = []
  const names: Array<string> = []
  for (const { name, text } of runs) {
    const last = kept.at(-1)
    if (last !== undefined && names.at(-1) === name) last.push(text)
    else {
      kept.push([text])
      names.push(name)
    }
  }
  return kept.map((texts, index) => ({ name: names[index] ?? "", text: texts.join("") }))
}

/** A level stands before what is told. */
const levelWithin = 100

const level =
  /\b(?:(TRACE|DEBUG)|(INFO|NOTICE)|(WARN|WARNING)|(ERR|ERROR|SEVERE|CRIT|CRITICAL|FATAL|ALERT|EMERG|PANIC))\b/
const levelMember =
  /\b(?:level|lvl|severity)"?[=:] ?"?(?:(trace|debug)|(info|notice)|(warn|warning)|(err|error|severe|crit|critical|fatal|alert|emerg|panic))\b/i
const levelBracket =
  /[[<(](?:(trace|debug)|(info|notice)|(warn|warning)|(err|error|severe|crit|critical|fatal|alert|emerg|panic))[\])>]/i

const levelNames = ["low", "info", "warn", "error"]

/** Marks where the line has no colours of its own. */
const writeLine = (out: MarkupWriter, runs: ReadonlyArray<Run>): void => {
  let column = 0
  let isMarked = false
  for (const [index, { name, text }] of runs.entries()) {
    const stamp = index === 0 && name === "" ? timestampLength(text) : 0
    out.marked("time", text.slice(0, stamp))
    const rest = text.slice(stamp)
    if (name === "" && !isMarked && column < levelWithin) isMarked = writeLevel(out, rest)
    else out.linked(name, rest)
    column += text.length
  }
}

/** Writes all of the text; answers whether it has a level. */
const writeLevel = (out: MarkupWriter, text: string): boolean => {
  const head = text.slice(0, levelWithin)
  const found = level.exec(head) ?? levelMember.exec(head) ?? levelBracket.exec(head)
  if (found === null) {
    out.linked("", text)
    return false
  }
  const end = found.index + found[0].length
  out.linked("", text.slice(0, found.index))
  out.marked(levelNames[found.slice(1).findIndex((group) => group !== undefined)] ?? "", found[0])
  out.linked("", text.slice(end))
  return true
}
