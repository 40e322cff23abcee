import { hrefMax, type RenderedBody } from "./Body.ts"
import { type JsonTokens, jsonTokens, lineWidth } from "./JsonTokens.ts"
import { MarkupWriter, outwardLink } from "./MarkupWriter.ts"
import { remarkOf } from "./RenderText.ts"

/** JSON on lines of its own, in colours, where what is long can be folded; undefined for text that is none. */
export const renderJson = (body: string): RenderedBody | undefined => {
  const tokens = jsonTokens(body)
  if (tokens === undefined) return undefined
  const out = new MarkupWriter()
  out.raw('<div class="json">')
  new JsonWriter(tokens, out).value(0, 0)
  return { format: "json", html: `${out.html}</div>`, remark: remarkOf(out) }
}

/** Elements of a bracket that can be folded: `details`, `summary`, its content, two brackets and the count. */
const foldElements = 6

/** Beyond it lines are indented no further: a phone has no room for 64 levels. */
const indentedLevels = 12
/** Spaces count: where every bracket has a line they could be many times the body. */
const indentedPlainLevels = 4

class JsonWriter {
  readonly #tokens: JsonTokens
  readonly #out: MarkupWriter
  #isFolding = true

  constructor(tokens: JsonTokens, out: MarkupWriter) {
    this.#tokens = tokens
    this.#out = out
  }

  /** The value that begins at a token, at most 64 levels deep; answers the token behind it. */
  value(token: number, depth: number, name?: number): number {
    const { closes, counts, widths } = this.#tokens
    const close = closes[token] ?? 0
    const isShort = (counts[token] ?? 0) === 0 || (widths[token] ?? 0) + depth * 2 <= lineWidth
    if (close > 0 && !isShort) {
      if (this.#isFolding && this.#out.mayMark(foldElements)) return this.#folded(token, depth, name)
      // Behind the first that there was no room for all are plain, so that they look alike.
      this.#isFolding = false
    }
    if (name !== undefined) this.#name(name)
    if (close === 0) this.#scalar(token)
    else if (isShort) this.#flat(token, depth)
    else this.#lines(token, depth)
    return (close > 0 ? close : token) + 1
  }

  #word(token: number): string {
    return this.#tokens.text.slice(this.#tokens.starts[token], this.#tokens.ends[token])
  }

  #name(token: number): void {
    this.#out.marked("key", shown(this.#word(token)))
    this.#out.text(": ")
  }

  #scalar(token: number): void {
    const word = this.#word(token)
    if (!word.startsWith('"')) return this.#out.marked(word === "null" ? "null" : "value", word)
    if (isAddress(word) && this.#out.mayMark()) {
      const address = word.slice(1, -1)
      this.#out.text('"')
      this.#out.raw(outwardLink(address, address))
      return this.#out.text('"')
    }
    return this.#out.marked("string", shown(word))
  }

  /** On one line: `{ "a": 1 }`, `[1, 2]`. */
  #flat(token: number, depth: number): void {
    const isObject = this.#word(token) === "{"
    const isEmpty = this.#tokens.counts[token] === 0
    this.#out.text(isObject && !isEmpty ? "{ " : this.#word(token))
    this.#members(token, depth, ", ")
    this.#out.text(isObject && !isEmpty ? " }" : isObject ? "}" : "]")
  }

  #folded(token: number, depth: number, name: number | undefined): number {
    const close = this.#tokens.closes[token] ?? 0
    const count = this.#tokens.counts[token] ?? 0
    const noun = this.#word(token) === "{" ? "member" : "item"
    this.#out.raw("<details open><summary>")
    if (name !== undefined) this.#name(name)
    this.#out.text(this.#word(token))
    this.#out.raw(` <small>${count} ${noun}${count === 1 ? "" : "s"}</small></summary>`)
    this.#out.raw(depth < indentedLevels ? '<div class="in">' : "<div>")
    this.#members(token, depth + 1, ",\n")
    this.#out.raw("</div></details>")
    this.#out.text(this.#word(close))
    return close + 1
  }

  /** As text alone. */
  #lines(token: number, depth: number): void {
    const indent = "  ".repeat(Math.min(depth, indentedPlainLevels))
    this.#out.text(`${this.#word(token)}\n${indent}  `)
    this.#members(token, depth + 1, `,\n${indent}  `)
    this.#out.text(`\n${indent}${this.#word(this.#tokens.closes[token] ?? 0)}`)
  }

  #members(token: number, depth: number, between: string): void {
    const { closes, widths } = this.#tokens
    const close = closes[token] ?? 0
    const isObject = this.#word(token) === "{"
    let column = 0
    for (let member = token + 1; member < close;) {
      const width = widths[isObject ? member + 1 : member] ?? 0
      // Numbers of a list share lines.
      const sharesLine = !isObject && width <= 24 && closes[member] === 0 && this.#word(member)[0] !== '"'
      const isNext = column > 0 && sharesLine && column + width + 2 <= lineWidth - depth * 2
      if (member > token + 1) this.#out.text(isNext ? ", " : between)
      column = !sharesLine ? 0 : isNext ? column + width + 2 : width
      member = isObject ? this.value(member + 1, depth, member) : this.value(member, depth)
    }
  }
}

/** Characters that are not seen, or move others. */
const unseen =
  // oxlint-disable-next-line no-control-regex
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

/** As JSON may write it as well. */
const shown = (word: string): string =>
  word.replace(unseen, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A string that is an address, without an escape. */
const isAddress = (word: string): boolean =>
  word.length <= hrefMax &&
  /^"https?:\/\/[!-~]+"$/.test(word) &&
  !/["\\<>`]/.test(word.slice(1, -1)) &&
  URL.canParse(word.slice(1, -1))
