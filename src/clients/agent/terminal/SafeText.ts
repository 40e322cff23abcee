/**
 * Text of others (server, model, tools, file names) as a terminal may have it. No control character is left, so no escape
 * sequence is; what would reorder or hide text is shown as what it is: `\u{202e}`.
 */

/** Controls, invisible and reordering characters, halves of surrogate pairs, letters that look like nothing. */
const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\u115f\u1160\u3164\uffa0]/gu

/** Joins what belongs together in emoji and in several scripts; harmless where nobody has to trust the text. */
const joiners = new Set(["\u200c", "\u200d"])

const shown = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  // The control pictures of Unicode: ␀ to ␟, and ␡.
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return "\u2421"
  return `\\u{${code.toString(16).padStart(4, "0")}}`
}

/** Lines and tabs stay. */
export const safeText = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replace(unsafe, (character) =>
      character === "\n" || character === "\t" || joiners.has(character) ? character : shown(character)
    )

/** For what somebody decides on: nothing is invisible in it, joiners neither. */
export const strictText = (text: string): string =>
  text.replace(unsafe, (character) =>
    character === "\n" || character === "\t" ? character : shown(character)
  )

/** On one line: lines become `⏎`, tabs spaces. */
export const safeLine = (text: string): string => safeText(text).replaceAll("\n", "⏎").replaceAll("\t", " ")

/** Colours and cursor movements that commands print, as ECMA-48 5.4 writes them. */
// oxlint-disable-next-line no-control-regex
const controlSequence = /\u001b\[[0-?]*[ -/]*[@-~]/g

/** Output of a command: without its colours, and what it wrote over itself (progress) on lines of its own. */
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
