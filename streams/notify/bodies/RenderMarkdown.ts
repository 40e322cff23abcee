import MarkdownIt from "markdown-it"
import { hrefMax, type RenderedBody } from "./Body.ts"
import { cleanText } from "./CleanText.ts"

/** Characters of addresses in all links of one text: a definition of one can be used in thousands of places. */
const hrefsMax = 512 * 1024

/** Text with more of either is not worth more. */
const htmlMax = 8 * 1024 * 1024

type Token = ReturnType<typeof markdown.parse>[number]

const markdown = new MarkdownIt({ html: false, linkify: true, typographer: false })

/**
 * CommonMark with tables and strikethrough. HTML is text, links lead to http(s) and mailto or are text too, images are links.
 * Takes time and memory that its caller has to bound: worst cases of 256 KB are some 100 ms and 100 MB.
 */
export const renderMarkdown = (text: string): RenderedBody => {
  const html = markdown.render(cleanText(text), {})
  if (html.length > htmlMax) throw new Error("the Markdown grows too large")
  return { format: "markdown", html: `<div class="markdown" dir="auto">${html}</div>`, remark: undefined }
}

// Names of files such as `main.rs` are no addresses.
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false })
markdown.validateLink = (href) => href.length <= hrefMax && /^(?:https?:\/\/|mailto:)[!-~]/i.test(href)
markdown.core.ruler.push("outward", ({ Token, tokens }) => {
  const hrefs = { left: hrefsMax }
  for (const token of tokens) {
    token.attrs = attributesOf(token)
    // The message's own title is above.
    if (token.type.startsWith("heading_")) token.tag = `h${Math.min(Number(token.tag.slice(1)) + 1, 6)}`
    if (token.type === "fence") token.info = ""
    token.children &&= outward(token.children, hrefs, (type, tag, nesting) => new Token(type, tag, nesting))
  }
})
// Wide ones are scrolled in their own place, with the keyboard too.
markdown.renderer.rules["table_open"] = () =>
  '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>\n'
markdown.renderer.rules["table_close"] = () => "</table></div>\n"

/** The start of a list, and columns by class: a page has no styles in its elements. */
const attributesOf = (token: Token): Token["attrs"] => {
  const start = token.attrGet("start")
  if (token.type === "ordered_list_open" && start !== null) return [["start", start]]
  const side = /^text-align:(left|center|right)$/.exec(String(token.attrGet("style")))?.[1]
  return side === undefined ? null : [["class", side]]
}

/** Links with the attributes that lead away, without titles; images as links, or as their text within one. */
const outward = (
  tokens: ReadonlyArray<Token>,
  hrefs: { left: number },
  make: (type: string, tag: string, nesting: 1 | 0 | -1) => Token
): Array<Token> => {
  const made: Array<Token> = []
  let isInLink = false
  let isDropped = false
  const open = (token: Token, href: string): void => {
    hrefs.left -= href.length
    isInLink = true
    isDropped = hrefs.left < 0 || !markdown.validateLink(href)
    token.attrs = [
      ["href", href],
      ["rel", "noopener noreferrer nofollow"]
    ]
    if (!isDropped) made.push(token)
  }
  const close = (token: Token): void => {
    if (!isDropped) made.push(token)
    isInLink = false
  }
  for (const token of tokens) {
    if (token.type === "link_open") open(token, String(token.attrGet("href")))
    else if (token.type === "link_close") close(token)
    else if (token.type !== "image") made.push(token)
    else {
      const text = make("text", "", 0)
      text.content =
        markdown.renderer.renderInlineAsText(token.children ?? [], markdown.options, {}) || "image"
      if (isInLink) made.push(text)
      else {
        open(make("link_open", "a", 1), String(token.attrGet("src")))
        made.push(text)
        close(make("link_close", "a", -1))
      }
    }
  }
  return made
}
