import { printable } from "../boundary/Printable.ts"

/**
 * Text of others (server, model, tools, file names) as a terminal may have it. No control character is left, so no
 * escape sequence is; characters that reorder or hide text are shown by their code: `\u{202e}`.
 */

/** Letters of Hangul and jamo that look like nothing. */
const blanks = /[\u115f\u1160\u3164\uffa0]/g

/** Joiners, which emoji and several scripts need; harmless in texts that need no trust. */
const joiners = /([\u200c\u200d])/

/**
 * Pictures that are joined to one are two columns wide in some terminals and six in others, which breaks lines where the
 * library expects none: they stand beside each other instead.
 */
const pictureJoiner = /(?<=\p{Extended_Pictographic}\ufe0f?)\u200d(?=\p{Extended_Pictographic})/gu

/** For texts that a decision depends on: no character is invisible, joiners included. */
export const strictText = (text: string): string =>
  printable(text.toWellFormed()).replace(blanks, (blank) => `\\u{${blank.charCodeAt(0).toString(16)}}`)

/** Lines and tabs stay. */
export const safeText = (text: string): string =>
  text
    .replace(pictureJoiner, "")
    .split(joiners)
    .map((piece) => (joiners.test(piece) ? piece : strictText(piece)))
    .join("")

/** On one line: lines become `⏎`, tabs spaces. */
export const safeLine = (text: string): string => safeText(text).replaceAll("\n", "⏎").replaceAll("\t", " ")

/** Colours and cursor movements that commands print, as ECMA-48 5.4 writes them. */
// oxlint-disable-next-line no-control-regex
const controlSequence = /\u001b\[[0-?]*[ -/]*[@-~]/g

/** Output of a command: without its colours, and with overwritten text (progress) on lines of its own. */
export const safeOutput = (text: string): string =>
  safeText(text.replaceAll("\r\n", "\n").replaceAll("\r", "\n").replace(controlSequence, ""))

/** Every text within a value made safe, names of fields too. Values nested deeper than 64 are left out. */
export const safeValue = (value: unknown, depth = 0): unknown => {
  if (typeof value === "string") return safeText(value)
  if (typeof value !== "object" || value === null) return value
  if (depth >= 64) return "…"
  if (Array.isArray(value)) return value.map((item) => safeValue(item, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [safeText(name), safeValue(item, depth + 1)])
  )
}
