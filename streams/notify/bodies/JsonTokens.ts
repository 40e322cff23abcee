import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"

/** Members that stand on one line of the page, if they fit. */
export const lineWidth = 96

/** The tokens of JSON text in its own words: numbers beyond a double and doubled names stay what they are. */
export interface JsonTokens {
  readonly text: string
  /** where each token begins and ends: brackets, names and values; colons and commas are none */
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  /** of a bracket that opens: the token that closes it; else 0 */
  readonly closes: Uint32Array
  /** columns of the value on one line, or of all tokens of a bracket; beyond `lineWidth` it says no more than that */
  readonly widths: Uint16Array
  /** of a bracket that opens: its values */
  readonly counts: Uint32Array
}

/** Text that is a JSON object or array, and nested no deeper than bodies may be; undefined where it is not. */
export const jsonTokens = (body: string): JsonTokens | undefined => {
  const text = body.trim()
  if (!isEnclosed(text) || depthOf(Buffer.from(text)) > jsonDepthMax) return undefined
  try {
    JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
  return tokensOf(text)
}

const isEnclosed = (text: string): boolean =>
  (text.startsWith("{") && text.endsWith("}")) || (text.startsWith("[") && text.endsWith("]"))

/** Of text that is JSON: nothing is checked again. */
const tokensOf = (text: string): JsonTokens => {
  const { ends, starts } = placesOf(text)
  const widths = new Uint16Array(starts.length)
  const closes = new Uint32Array(starts.length)
  const counts = new Uint32Array(starts.length)
  const open: Array<number> = []
  for (let token = 0; token < starts.length; token++) {
    const first = text[starts[token] ?? 0]
    const isClosing = first === "}" || first === "]"
    const began = isClosing ? open.pop() : token
    if (began === undefined) throw new Error("a bracket is closed that was not opened")
    if (isClosing) {
      closes[began] = token
      // Two spaces within braces, and `, ` between values or names.
      widths[began] = capped((widths[began] ?? 0) + (first === "}" ? 4 : 2))
    } else widths[token] = capped((ends[token] ?? 0) - (starts[token] ?? 0))
    const within = open.at(-1)
    if (within !== undefined && (isClosing || (first !== "{" && first !== "["))) {
      widths[within] = capped((widths[within] ?? 0) + (widths[began] ?? 0) + 2)
      counts[within] = (counts[within] ?? 0) + 1
    }
    if (first === "{" || first === "[") {
      widths[token] = 0
      open.push(token)
    }
  }
  return { text, starts, ends, closes, widths, counts: valuesOf(text, starts, counts) }
}

const capped = (width: number): number => Math.min(width, 0xffff)

/** Of an object a name and a value were counted. */
const valuesOf = (text: string, starts: Uint32Array, counts: Uint32Array): Uint32Array =>
  counts.map((count, token) => (text[starts[token] ?? 0] === "{" ? count / 2 : count))

const placesOf = (text: string): { readonly starts: Uint32Array; readonly ends: Uint32Array } => {
  const starts = new Uint32Array(text.length)
  const ends = new Uint32Array(text.length)
  let count = 0
  for (let index = 0; index < text.length;) {
    const code = text.charCodeAt(index)
    const end = isBetween(code) ? index : endOfToken(text, index)
    if (end === index) {
      index++
      continue
    }
    starts[count] = index
    ends[count++] = end
    index = end
  }
  return { starts: starts.slice(0, count), ends: ends.slice(0, count) }
}

const [quote, backslash] = [0x22, 0x5c]

/** Blanks, colon and comma. */
const isBetween = (code: number): boolean => code <= 0x20 || code === 0x3a || code === 0x2c

const isBracket = (code: number): boolean => code === 0x5b || code === 0x5d || code === 0x7b || code === 0x7d

const endOfToken = (text: string, start: number): number => {
  const first = text.charCodeAt(start)
  if (isBracket(first)) return start + 1
  let end = start + 1
  if (first === quote) {
    for (; end < text.length && text.charCodeAt(end) !== quote; end++)
      if (text.charCodeAt(end) === backslash) end++
    return end + 1
  }
  while (end < text.length && !isBetween(text.charCodeAt(end)) && !isBracket(text.charCodeAt(end))) end++
  return end
}
