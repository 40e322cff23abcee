import type { Body, ShownFormat } from "./Body.ts"
import { jsonTokens } from "./JsonTokens.ts"
import { isStamped } from "./Timestamps.ts"

/** The format that a body is shown in: its own, or what its text looks like. Source: contract/notify#bodies */
export const formatOf = ({ format, text }: Body): ShownFormat => {
  if (format !== "auto") return format
  if (jsonTokens(text) !== undefined) return "json"
  if (isLog(text)) return "log"
  return isMarkdown(text) ? "markdown" : "text"
}

/** Characters of a text that tell what it is. */
const lookedAt = 64 * 1024
/** Lines of it. */
const linesLookedAt = 400

const headLines = (text: string): ReadonlyArray<string> =>
  text.slice(0, lookedAt).split(/\r\n?|\n/, linesLookedAt)

/** Colours of a terminal anywhere, or most lines say when they were written. */
const isLog = (text: string): boolean => {
  // oxlint-disable-next-line no-control-regex
  if (/\u001b\[[\d;:]{0,64}m/.test(text)) return true
  // An indented line goes on with the one before, as a stack trace does.
  const lines = headLines(text).filter((line) => /^\S|^ {1,8}\d+\./.test(line))
  return lines.length > 1 && lines.filter(isStamped).length * 2 > lines.length
}

/** Lines and spans that people write in Markdown alone: two points each … */
const strongMarks = [
  /^ {0,3}(?:```|~~~)/,
  /^ {0,3}\|? ?:?-{3,}:? ?\|/,
  /\[[^\][]{1,200}\]\((?:https?:\/\/|mailto:)/
]

/** … and those that other texts may have: one. */
const weakMarks = [
  /^#{1,6} \S/,
  /^ {0,3}[-*+] \S/,
  /^ {0,3}\d{1,9}[.)] \S/,
  /^ {0,3}> ?\S/,
  /\*\*[^\s*][^*]{0,200}\*\*/,
  /`[^`]{1,200}`/
]

const enough = 2

/** Nothing that is longer is read of a line. */
const lineLookedAt = 2_000

const isMarkdown = (text: string): boolean => {
  if (isDiff(text)) return false
  let points = 0
  for (const whole of headLines(text)) {
    const line = whole.slice(0, lineLookedAt)
    if (strongMarks.some((mark) => mark.test(line))) return true
    if (weakMarks.some((mark) => mark.test(line)) && ++points >= enough) return true
  }
  return false
}

/** Its lines would be items of lists. */
const isDiff = (text: string): boolean => /^(?:diff --git |@@ -\d|--- \S)/m.test(text.slice(0, lookedAt))
