import { encodeWord } from "nodemailer/lib/mime-funcs"
import type { Mailbox, MailFields } from "#streams/mail/MailFields.ts"

/** Lines should not be longer, without their CRLF. Source: RFC 5322, 2.1.1. */
const lineMax = 78
/** An encoded word has 75 characters at most. Source: RFC 2047, 2. */
const encodedWordMax = 75
const fold = "\r\n "

const isPrintable = /^[\x20-\x7e]*$/
const isAtoms = /^[\w!#$%&'*+/=?^`{|}~-]+( [\w!#$%&'*+/=?^`{|}~-]+)*$/

/** Text that receivers would read otherwise than it was written, were it not encoded: look-alikes of encoded words, too. */
const isPlain = (text: string): boolean =>
  isPrintable.test(text) && !text.includes("=?") && !/^ | {2}| $/.test(text)

/** Encoded words, one a line. Source: RFC 2047. */
const encoded = (text: string): string => {
  const latin = text.replace(/[^a-z]/gi, "").length
  const words = encodeWord(text, latin * 2 > text.length ? "Q" : "B", encodedWordMax - fold.length)
  return words.replaceAll("?= =?", `?=${fold}=?`)
}

/** Lines broken at single spaces; `first` characters are before the text on its first line. */
const folded = (text: string, first: number): string => {
  let length = first
  return text
    .split(" ")
    .map((word, index) => {
      const isNext = index > 0 && length + 1 + word.length > lineMax
      length = isNext ? 1 + word.length : length + 1 + word.length
      return index === 0 ? word : isNext ? fold + word : ` ${word}`
    })
    .join("")
}

/** A header of free text. Source: RFC 5322, 2.2.1; RFC 2047, 5. */
const textHeader = (name: string, value: string): string => {
  const before = name.length + 2
  const isShort = value.split(" ").every((word) => before + word.length <= lineMax)
  return `${name}: ${isPlain(value) && isShort ? folded(value, before) : encoded(value)}`
}

const displayName = (name: string): string => {
  if (!isPlain(name) || name.length > encodedWordMax - fold.length) return encoded(name)
  return isAtoms.test(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`
}

const mailboxText = ({ address, name }: Mailbox): string => {
  if (name === null || name === "") return address
  const shown = displayName(name)
  const lastLine = shown.length - (shown.lastIndexOf("\r\n") + 1)
  return `${shown}${lastLine + address.length + 4 > lineMax ? fold : " "}<${address}>`
}

/** One mailbox a line: no list makes a line too long. Source: RFC 5322, 3.6.3. */
const addressHeader = (name: string, mailboxes: ReadonlyArray<Mailbox>): ReadonlyArray<string> =>
  mailboxes.length === 0 ? [] : [`${name}: ${mailboxes.map(mailboxText).join(`,${fold}`)}`]

/** Headers whose values are identifiers, which encoded words would spoil. Source: RFC 5322, 3.6.4; RFC 3834, 5. */
const structured = new Set(["in-reply-to", "references", "auto-submitted"])

const customHeader = ([name, value]: readonly [string, string]): string =>
  structured.has(name.toLowerCase())
    ? `${name}: ${folded(value.replace(/ +/g, " "), name.length + 2)}`
    : textHeader(name, value)

/**
 * The headers of a mail above those of MIME, its Date and its Message-ID, as lines that end with CRLF, in ASCII alone. Bcc
 * is not among them. Source: RFC 5322, 3.6.
 */
export const messageHead = ({ cc, from, headers, replyTo, subject, to }: MailFields): string =>
  [
    ...addressHeader("From", [from]),
    ...addressHeader("To", to),
    ...addressHeader("Cc", cc),
    ...addressHeader("Reply-To", replyTo === null ? [] : [replyTo]),
    textHeader("Subject", subject),
    ...headers.map(customHeader)
  ]
    .map((line) => `${line}\r\n`)
    .join("")
