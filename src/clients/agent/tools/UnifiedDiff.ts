/** One exchanged piece of a text: characters `start` to `end` of the old text became `text`. */
export interface Replacement {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Whole lines that differ, counted from 0 in the old and the new text. */
interface Change {
  readonly oldAt: number
  readonly newAt: number
  readonly removed: ReadonlyArray<string>
  readonly added: ReadonlyArray<string>
}

const contextLines = 3

/** Lines with their ends; none for "". */
const linesIn = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

/** Replacements with the rest of their lines; those that share a line become one. They are in order. */
const wholeLines = (old: string, replacements: ReadonlyArray<Replacement>): ReadonlyArray<Replacement> => {
  const whole: Array<Replacement> = []
  for (const { start, end, text } of replacements) {
    const from = start === 0 ? 0 : old.lastIndexOf("\n", start - 1) + 1
    const lineEnd = old.indexOf("\n", end)
    const to = lineEnd < 0 ? old.length : lineEnd + 1
    const last = whole.at(-1)
    if (last === undefined || from >= last.end) {
      whole.push({ start: from, end: to, text: old.slice(from, start) + text + old.slice(end, to) })
    } else {
      // The last one carries this line up to its end, unchanged: that tail is what is exchanged now.
      const tail = last.end - start
      const head = last.text.slice(0, last.text.length - tail)
      whole.splice(-1, 1, { start: last.start, end: to, text: head + text + old.slice(end, to) })
    }
  }
  return whole
}

const changesOf = (old: string, replacements: ReadonlyArray<Replacement>): ReadonlyArray<Change> => {
  const changes: Array<Change> = []
  let at = 0
  let oldAt = 0
  let shift = 0
  for (const { start, end, text } of wholeLines(old, replacements)) {
    oldAt += linesIn(old.slice(at, start)).length
    const removed = linesIn(old.slice(start, end))
    const added = linesIn(text)
    let head = 0
    while (head < Math.min(removed.length, added.length) && removed[head] === added[head]) head++
    let tail = 0
    const most = Math.min(removed.length, added.length) - head
    while (tail < most && removed.at(-1 - tail) === added.at(-1 - tail)) tail++
    changes.push({
      oldAt: oldAt + head,
      newAt: oldAt + head + shift,
      removed: removed.slice(head, removed.length - tail),
      added: added.slice(head, added.length - tail)
    })
    oldAt += removed.length
    shift += added.length - removed.length
    at = end
  }
  return changes.filter(({ removed, added }) => removed.length + added.length > 0)
}

const marked = (mark: string, lines: ReadonlyArray<string>): string =>
  lines
    .map((line) =>
      line.endsWith("\n") ? `${mark}${line}` : `${mark}${line}\n\\ No newline at end of file\n`
    )
    .join("")

const range = (at: number, count: number): string => `${count === 0 ? at : at + 1},${count}`

const hunk = (old: ReadonlyArray<string>, changes: ReadonlyArray<Change>): string => {
  const [first, last] = [changes[0], changes.at(-1)]
  if (first === undefined || last === undefined) return ""
  const from = Math.max(0, first.oldAt - contextLines)
  const to = Math.min(old.length, last.oldAt + last.removed.length + contextLines)
  let body = ""
  let at = from
  let grown = 0
  for (const { oldAt, removed, added } of changes) {
    body += marked(" ", old.slice(at, oldAt)) + marked("-", removed) + marked("+", added)
    at = oldAt + removed.length
    grown += added.length - removed.length
  }
  body += marked(" ", old.slice(at, to))
  const newFrom = first.newAt - (first.oldAt - from)
  return `@@ -${range(from, to - from)} +${range(newFrom, to - from + grown)} @@\n${body}`
}

/** The replacements, in order and apart, as a unified diff with three lines of context (POSIX diff -u). */
export const unifiedDiff = (path: string, old: string, replacements: ReadonlyArray<Replacement>): string => {
  const lines = linesIn(old)
  const groups: Array<Array<Change>> = []
  for (const change of changesOf(old, replacements)) {
    const before = groups.at(-1)?.at(-1)
    const isNear =
      before !== undefined && change.oldAt - (before.oldAt + before.removed.length) <= 2 * contextLines
    if (isNear) groups.at(-1)?.push(change)
    else groups.push([change])
  }
  if (groups.length === 0) return ""
  return `--- a/${path}\n+++ b/${path}\n${groups.map((changes) => hunk(lines, changes)).join("")}`
}
