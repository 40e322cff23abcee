import { compile, type FormatCallback } from "html-to-text"

/** The text of an image is its description. */
const description: FormatCallback = ({ attribs }, _walk, builder) => {
  const { alt } = attribs as { readonly alt?: string }
  if (alt !== undefined) builder.addInline(alt)
}

const heading = { format: "heading", options: { uppercase: false } }

const convert = compile({
  wordwrap: 78,
  formatters: { description },
  selectors: [
    { selector: "img", format: "description" },
    { selector: "a", options: { hideLinkHrefIfSameAsText: true, noAnchorUrl: true } },
    ...["h1", "h2", "h3", "h4", "h5", "h6"].map((selector) => ({ selector, ...heading }))
  ]
})

/** Indentation and rules can make more text than there is HTML, without end. */
const growthMax = 2
const growthFree = 64 * 1024

/** Text for those who read no HTML, in lines of 78 characters. HTML that is nested too deep for it is stripped instead. */
export const textOfHtml = (html: string): string => {
  try {
    const text = convert(html)
    return text.length > growthFree + growthMax * html.length ? strippedText(html) : text
  } catch (error) {
    // A stack that overflows, or a string that is too long.
    if (error instanceof RangeError) return strippedText(html)
    throw error
  }
}

const breaking = /^<\/?(br|p|div|tr|table|h[1-6]|li|ul|ol|blockquote|pre|hr|section|article|header|footer)\b/i
/** No part of it looks at a character twice: what has no end goes on to the end of the text. */
const markup =
  /<!--[\s\S]*?(?:-->|$)|<(script|style|title|template)\b[\s\S]*?(?:<\/\1[^<>]*>?|$)|<[a-z/!?][^<>]*>/gi

const named: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " "
}

const codePointMax = 0x10ffff

const characterOf = (reference: string, name: string): string => {
  if (!name.startsWith("#")) return named[name.toLowerCase()] ?? reference
  const isHex = /^#x/i.test(name)
  const code = Number.parseInt(name.slice(isHex ? 2 : 1), isHex ? 16 : 10)
  return code >= 0x20 && code <= codePointMax ? String.fromCodePoint(code) : reference
}

/** The text between the tags, in time that grows with its length alone. */
export const strippedText = (html: string): string =>
  html
    .replace(/[\t\r\n ]+/g, " ")
    .replace(markup, (tag) => (breaking.test(tag) ? "\n" : ""))
    .replace(/&(#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,4});/gi, characterOf)
    .replace(/ +/g, " ")
    .replace(/ ?\n ?/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim()
