import { cleanText } from "../bodies/CleanText.ts"
import { type Notice, smallBytes } from "./Channel.ts"

/** The words of a notice, the same in every channel, and those of chats cut to fit. */

/** Source: contract/notify#sending. */
export const headingOf = ({ app, title }: Pick<Notice, "app" | "title">): string => title ?? app

/** With the paperclip where the message has attachments. */
export const textOf = ({ hasPaperclip, message }: Pick<Notice, "hasPaperclip" | "message">): string =>
  hasPaperclip ? `📎 ${message}` : message

export interface ChatLink {
  /** words of this server's, or a host in ASCII: it hides no other address */
  readonly label: string
  /** http or https, as `URL` writes it */
  readonly url: string
}

/** A message in a chat: text that is not escaped for any service. */
export interface ChatMessage {
  /** one line, not empty */
  readonly heading: string
  /** lines end with \n */
  readonly text: string
  /** in this order: the message's address, then its page */
  readonly links: ReadonlyArray<ChatLink>
}

const newLines = /[\n\u0085\u2028\u2029]/g

/**
 * A text without what would hide or move another: overrides of direction, controls, halves of pairs, and more than two empty
 * lines in a row.
 */
const chatLines = (text: string): string =>
  cleanText(text)
    .replace(newLines, "\n")
    .replace(/\n(?:[^\S\n]*\n){3,}/g, "\n\n\n")

const chatLine = (text: string): string => cleanText(text).replace(newLines, " ").trim() || "…"

const linkOf = (url: string): ChatLink => {
  const { host, href } = new URL(url)
  return { label: host, url: href }
}

/**
 * The addresses under a message. Where there is a page with more than its text, the message's own address comes first, and the page
 * after it. Never the settings: a chat has other readers.
 */
const linksOf = ({ hasView, pageUrl, url }: Notice, isCut: boolean): ReadonlyArray<ChatLink> => [
  ...(url === undefined ? [] : [linkOf(url)]),
  ...(hasView || isCut ? [{ label: "Show all", url: pageUrl }] : [])
]

const inAddress = "[\\w.~:/?#@!$&'+,;=%-]"
const inParentheses = `\\(${inAddress}*\\)`

/**
 * Addresses within a text: they are cut nowhere within, since half of one leads elsewhere. Punctuation behind one is no part of it, nor
 * is a parenthesis that it does not open.
 */
export const addresses = new RegExp(
  `https?://(?:${inAddress}|${inParentheses})*(?:[\\w~/#@$&+=%-]|${inParentheses})`,
  "giu"
)

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" })

/** The places, 0 first, at which a text may be cut: between graphemes, and not within an address. */
const cutsOf = (text: string): ReadonlyArray<number> => {
  const within = Array.from(text.matchAll(addresses), ({ 0: { length }, index }) => [index, index + length])
  const cuts: Array<number> = []
  let next = 0
  for (const { index } of graphemes.segment(text)) {
    while (index >= (within[next]?.[1] ?? Infinity)) next++
    if (index <= (within[next]?.[0] ?? Infinity)) cuts.push(index)
  }
  return cuts
}

/** A text shorter than this says too little: an address gives way to it. */
const textUnitsMin = 200

/** The longest beginning that fits, with `…`; white space before that goes. */
const cut = (text: string, fits: (cut: string) => boolean): string => {
  const cuts = cutsOf(text)
  const cutAt = (at: number) => `${text.slice(0, cuts[at] ?? 0).trimEnd()}…`
  let [least, most] = [0, cuts.length - 1]
  while (least < most) {
    const middle = Math.ceil((least + most) / 2)
    if (fits(cutAt(middle))) least = middle
    else most = middle - 1
  }
  return cutAt(least)
}

/** The messages that a service takes, as they are written for it. */
export interface ChatBounds {
  readonly textOf: (message: ChatMessage) => string
  /** UTF-16 units */
  readonly textUnitsMax: number
  readonly bodyOf: (message: ChatMessage) => Uint8Array
  /** it found a message too large (413): the bytes of the body count instead */
  readonly isSmaller: boolean | undefined
}

/**
 * A notice as a chat shows it, as much of its text as fits. Where the message's own address leaves too little room for it, the page
 * stands in, which has the address too.
 */
export const chatMessageOf = (notice: Notice, bounds: ChatBounds): ChatMessage => {
  const fits = (message: ChatMessage): boolean =>
    bounds.isSmaller === true
      ? bounds.bodyOf(message).length <= smallBytes
      : bounds.textOf(message).length <= bounds.textUnitsMax
  const heading = chatLine(headingOf(notice))
  const whole: ChatMessage = { heading, text: chatLines(textOf(notice)), links: linksOf(notice, false) }
  if (fits(whole)) return whole
  const withText = (text: string, links: ReadonlyArray<ChatLink>) => ({ heading, text, links })
  const links = linksOf(notice, true)
  const text = cut(whole.text, (one) => fits(withText(one, links)))
  if (text.length >= textUnitsMin) return withText(text, links)
  const lean = withText(whole.text, links.slice(-1))
  return fits(lean)
    ? lean
    : withText(
        cut(whole.text, (one) => fits(withText(one, lean.links))),
        lean.links
      )
}

/** The message by which those behind a webhook of a chat confirm it. */
export const chatConfirmation = (url: string): ChatMessage => ({
  heading: "Confirm this channel",
  text: "Someone asked that notifications be posted here. If you want them, open the link and confirm. If you do not know of it, do nothing: none are sent.",
  links: [{ label: "Confirm", url }]
})
