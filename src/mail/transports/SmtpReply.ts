import type { Handed } from "./Transport.ts"

/** The errors of nodemailer's SMTPConnection, as far as they are read here. */
export interface ConnectionError extends Error {
  readonly code?: string | number | undefined
  /** "MAIL FROM", "RCPT TO", "DATA", "API" (its own refusal), … */
  readonly command?: string | undefined
  readonly response?: string | undefined
  readonly responseCode?: number | undefined
}

/** A refusal, or a connection that is lost or of no use. */
export interface SmtpFault {
  readonly command: string | undefined
  /** of the reply; undefined: there was none that could be read */
  readonly code: number | undefined
  readonly text: string
  /** the message is refused before the server was asked, such as one above the size that it announced */
  readonly isOfMessage: boolean
}

export const faultOf = (error: ConnectionError): SmtpFault => ({
  command: error.command,
  code: error.responseCode,
  text: error.response ?? error.message,
  isOfMessage:
    error.response === undefined &&
    ((error.code === "EENVELOPE" && error.command === "API") ||
      (error.code === "EMESSAGE" && error.command === "MAIL FROM"))
})

/** A fault without a reply. */
export const lossOf = (text: string): SmtpFault => ({
  command: undefined,
  code: undefined,
  text,
  isOfMessage: false
})

/** A transaction's end, by how far it got: to the 354, to the final dot, or past it. */
export type TransactionEnd =
  | { readonly phase: "envelope" | "data"; readonly fault: SmtpFault }
  | { readonly phase: "ended"; readonly fault: SmtpFault }
  | { readonly phase: "ended"; readonly response: string }
  | { readonly phase: "withdrawn" }

/** A reply as one line without control characters. */
export const cleaned = (reply: string, characters: number): string =>
  reply
    // oxlint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0020\u007f-\u009f\u2028\u2029]+/g, " ")
    .trim()
    .slice(0, characters)
    .toWellFormed()

const isRefusal = (code: number | undefined): code is number =>
  code !== undefined && code >= 400 && code <= 599 && code !== 421

/**
 * Whether a refusal says by its enhanced status that the sender is at fault, whatever command it answers: Postfix keeps its
 * refusals of senders until RCPT. Source: RFC 3463, 3.2: x.1.7 and x.1.8; RFC 7505, 4.2: x.7.27.
 */
const namesSender = (text: string): boolean => /^\d{3}[ -][45]\.(?:1\.[78]|7\.27)(?!\d)/.test(text)

/**
 * Whether a refusal of MAIL FROM is of the sender: the address, its mailbox or the sender's rights. Others speak of the
 * client or of the server (a login that is missing, no room, a command that is not known). Source: RFC 5321, 4.2.3.
 */
const isOfSender = (code: number): boolean => [501, 550, 551, 553, 554].includes(code)

type Replied = Exclude<TransactionEnd, { readonly phase: "withdrawn" }>
type Verdict = { readonly tag: Exclude<Handed["_tag"], "Withdrawn">; readonly text: string }

const verdictOf = (end: Replied): Verdict => {
  if ("response" in end)
    // "2 all right" or an early 250 is no reply to the message.
    return { tag: /^2\d\d(?![^\s-])/.test(end.response) ? "Sent" : "Unknown", text: end.response }
  const { code, command, isOfMessage, text } = end.fault
  if (isOfMessage) return { tag: "Bounced", text }
  if (code === 421) return { tag: "RouteDown", text }
  if (isRefusal(code) && namesSender(text)) return { tag: "SenderRefused", text }
  // MAIL FROM is the relay's word on its client or on the sender, but for the message's size (RFC 1870, 6.1).
  const isOfRecipient =
    end.phase !== "envelope" || command === "RCPT TO" || command === "DATA" || code === 552
  if (isRefusal(code) && isOfRecipient) return { tag: code >= 500 ? "Bounced" : "Deferred", text }
  if (isRefusal(code) && command === "MAIL FROM" && isOfSender(code)) return { tag: "SenderRefused", text }
  return { tag: end.phase === "ended" ? "Unknown" : "RouteDown", text }
}

/** Source: RFC 5321 4.2 and 3.8. A 421 is of the server, whatever it answers. */
export const handedOf = (end: TransactionEnd, characters: number): Handed => {
  if (end.phase === "withdrawn") return { _tag: "Withdrawn" }
  const { tag, text } = verdictOf(end)
  return { _tag: tag, reply: cleaned(text, characters) }
}

/**
 * Whether a refusal says that there is no such mailbox: it is not there, its domain is not, it has moved, its domain takes no
 * mail. 5.1.7 and 5.1.8 speak of the sender. Source: RFC 3463, 3.2; RFC 7505, 4.
 */
export const saysNoMailbox = (reply: string): boolean => /^5\d\d[ -]5\.1\.(?:[1236]|10)(?!\d)/.test(reply)

/** Whether the connection takes another message after it, once RSET has ended a refused envelope. */
export const staysUsable = (end: TransactionEnd): boolean => {
  if (end.phase === "withdrawn" || end.phase === "data") return false
  if ("response" in end) return /^2\d\d(?![^\s-])/.test(end.response)
  if (end.phase === "envelope" && end.fault.command === "MAIL FROM") return end.fault.isOfMessage
  return isRefusal(end.fault.code) || end.fault.isOfMessage
}
