import { escapeHtml } from "#schemas/core/EscapeHtml.ts"
import { hrefMax, marksMax } from "./Body.ts"

/** A link that leads away, to an address that was checked. */
export const outwardLink = (href: string, text: string): string =>
  `<a href="${escapeHtml(href)}" rel="noopener noreferrer nofollow">${escapeHtml(text)}</a>`

/** Lines that a browser lays out together, once they are near to being seen. */
const partLines = 500

/** Writes text as HTML, with marks as long as there may be more. The text is whole in any case. */
export class MarkupWriter {
  #html = ""
  #marksLeft = marksMax
  #lines = 0
  #isPartOpen = false

  /** some text is without the mark that it should have */
  isReduced = false

  /** All of it. Parts are closed, own elements are their writer's. */
  get html(): string {
    return this.#isPartOpen ? `${this.#html}</span>` : this.#html
  }

  /** Whether so many more elements may be opened, which then count. */
  mayMark(elements = 1): boolean {
    if (this.#marksLeft < elements) {
      this.isReduced = true
      return false
    }
    this.#marksLeft -= elements
    return true
  }

  raw(html: string): void {
    this.#html += html
  }

  text(text: string): void {
    this.#html += escapeHtml(text)
  }

  /** @param name a class, or several; "" for none */
  marked(name: string, text: string): void {
    if (text === "") return
    if (name === "" || !this.mayMark()) this.text(text)
    else this.#html += `<span class="${name}">${escapeHtml(text)}</span>`
  }

  /** The text, with what looks like an address on the web as a link. */
  linked(name: string, text: string): void {
    if (!text.includes("://")) return this.marked(name, text)
    let from = 0
    for (const match of text.matchAll(webAddress)) {
      const href = hrefOf(match[0])
      if (href === undefined || !this.mayMark()) continue
      this.marked(name, text.slice(from, match.index))
      this.#html += outwardLink(href, href)
      from = match.index + href.length
    }
    this.marked(name, text.slice(from))
  }

  /** Before the first text of each line, where lines make parts. */
  beginLine(): void {
    if (this.#lines > 0) this.#html += "\n"
    if (this.#lines % partLines === 0) {
      this.#html += this.#isPartOpen ? '</span><span class="part">' : '<span class="part">'
      this.#isPartOpen = true
    }
    this.#lines++
  }
}

/** All to the next blank, quote or character that is not seen: a match is never looked at twice. */
const webAddress = /\bhttps?:\/\/[^\s<>"'`\u200b-\u200f\u2018-\u201f\u2060-\u206f\u2400-\u2421]+/gi

/** The address without the punctuation of the sentence that it is in; undefined where it is none, or too long for one. */
const hrefOf = (found: string): string | undefined => {
  if (found.length > hrefMax) return undefined
  const opened = found.indexOf("(")
  let end = found.length
  // A parenthesis that the address opened is a part of it.
  while (
    end > 0 &&
    punctuation.includes(found.charAt(end - 1)) &&
    !(found[end - 1] === ")" && isIn(opened, end))
  )
    end--
  const href = found.slice(0, end)
  return URL.canParse(href) ? href : undefined
}

const punctuation = ".,;:!?*_)]}"

const isIn = (index: number, end: number): boolean => index >= 0 && index < end
