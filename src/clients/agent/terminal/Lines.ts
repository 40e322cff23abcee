import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui"
import { safeLine } from "./SafeText.ts"

/** Text fitted into a number of columns. */

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" })

/** Tabs as spaces: how wide a tab is depends on where it stands, which no drawing library knows. */
const untabbed = (text: string): string => text.replaceAll("\t", "    ")

/** One line, ending in … where it was cut. */
export const fitted = (text: string, width: number): string =>
  truncateToWidth(untabbed(text), Math.max(1, width), "…")

/** Every character of a text, spaces too, cut into lines of a width. For text without styles. */
export const folded = (text: string, width: number): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => foldedLine(untabbed(line), Math.max(2, width)))

const foldedLine = (line: string, width: number): ReadonlyArray<string> => {
  if (line.length <= width && visibleWidth(line) <= width) return [line]
  const lines: Array<string> = []
  let current = ""
  let used = 0
  for (const { segment } of graphemes.segment(line)) {
    const wide = visibleWidth(segment)
    // A grapheme made of so many marks that no line holds it.
    if (wide > width) continue
    if (used + wide > width) {
      lines.push(current)
      current = ""
      used = 0
    }
    current += segment
    used += wide
  }
  return [...lines, current]
}

/** Prose in lines of a width, cut between words where there are any. */
export const wrapped = (text: string, width: number): ReadonlyArray<string> =>
  untabbed(text)
    .split("\n")
    .flatMap((line) => wrapTextWithAnsi(line, Math.max(2, width)))

/** The last lines that say something, and how many are before them. */
export const lastLines = (
  text: string,
  count: number
): { readonly lines: ReadonlyArray<string>; readonly before: number } => {
  const all = text.split("\n").filter((line) => line.trim() !== "")
  return { lines: all.slice(-count), before: Math.max(0, all.length - count) }
}

/** Both ends of a line; the left one gives way. */
export const spread = (left: string, right: string, width: number): string => {
  const room = width - visibleWidth(right) - 1
  if (right === "" || room < 8) return fitted(left, width)
  const start = fitted(left, room)
  return `${start}${" ".repeat(Math.max(1, width - visibleWidth(start) - visibleWidth(right)))}${right}`
}

// oxlint-disable-next-line no-control-regex
const sgr = /\u001b\[[0-9;]*m/g
// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f-\u009f]/

/** No wider than the screen: of a wider line the library makes a crash. */
export const narrowed = (line: string, width: number): string =>
  visibleWidth(line) > width ? truncateToWidth(line, width, "") : line

/** The last look at a line of the conversation before it is printed: it has no escape sequence but those of style. */
export const checked = (line: string, width: number): string =>
  narrowed(control.test(line.replaceAll(sgr, "")) ? safeLine(line) : line, width)
