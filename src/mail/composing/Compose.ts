import * as base64 from "nodemailer/lib/base64"
import MailComposer from "nodemailer/lib/mail-composer"
import type MimeNode from "nodemailer/lib/mime-node"
import * as quotedPrintable from "nodemailer/lib/qp"
import type { MailAttachment, MailFields } from "#streams/mail/MailFields.ts"
import { messageHead } from "./MessageHead.ts"

/** A mail that is to become a message. */
export interface MailToCompose {
  readonly fields: MailFields
  /** the value of Message-ID, with its angle brackets */
  readonly messageId: string
  /** for Date */
  readonly dateMillis: number
}

/**
 * The whole message, in ASCII with CRLF: text and HTML as alternatives, then the attachments. HTML and attachments have
 * their bytes, in base64; the line breaks of text become CRLF. Bcc is in no header. Source: RFC 5322, RFC 2045, RFC 2046.
 */
export const composeMail = ({ dateMillis, fields, messageId }: MailToCompose): Buffer => {
  const { attachments, html, text } = fields
  const isHtml = html !== null && html !== ""
  // A message without a body has an empty line, so that an attachment is not its body.
  const shown = (text ?? "").replace(/\r\n|\r|\n/g, "\r\n") || (isHtml ? "" : "\r\n")
  const composer = new MailComposer({
    messageId,
    date: new Date(dateMillis),
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(shown === "" ? {} : { text: { content: shown } }),
    // Of the encodings, quoted-printable knows no line breaks but CRLF in text, and HTML may have others.
    ...(isHtml ? { html: { content: html, contentTransferEncoding: "base64" } } : {}),
    attachments: attachments.map(attachmentPart)
  })
  const message = [ascii(messageHead(fields)), ...mimeOf(composer.compile())]
  if (message.at(-1)?.at(-1) !== lineFeed) message.push(ascii("\r\n"))
  return Buffer.concat(message)
}

const lineFeed = 0x0a
const ascii = (text: string): Buffer => Buffer.from(text, "latin1")

/** A tree as its own `build` writes it, but without streams: there are several a part, and they cost as much as its bytes. */
const mimeOf = (node: MimeNode): Array<Buffer> => {
  // The boundary is there once the headers are.
  const head = ascii(`${node.buildHeaders()}\r\n\r\n`)
  const { boundary, childNodes, content } = node
  if (typeof boundary !== "string") return [head, bodyOf(content, node.getTransferEncoding())]
  const parts = childNodes.flatMap((child, index) => [
    ascii(`${index === 0 ? "" : "\r\n"}--${boundary}\r\n`),
    ...mimeOf(child)
  ])
  return [head, ...parts, ascii(`\r\n--${boundary}--\r\n`)]
}

const bodyOf = (content: MimeNode["content"], encoding: string | false): Buffer => {
  if (typeof content !== "string" && !Buffer.isBuffer(content))
    throw new TypeError(`A part of a mail has ${typeof content}, neither text nor bytes`)
  if (encoding === "base64") return ascii(base64.wrap(base64.encode(content)))
  if (encoding === "quoted-printable") return ascii(quotedPrintable.wrap(quotedPrintable.encode(content)))
  return Buffer.from(content)
}

/** Parts of these types may not be encoded, so that their bytes could not be kept. Source: RFC 2046, 5.1 and 5.2.1. */
const unencodable = /^(message|multipart)\//i

const attachmentPart = ({ content, contentId, contentType, filename }: MailAttachment) => ({
  // Receivers decode what looks like an encoded word in a file's name, however it is written.
  filename: filename.replaceAll("=?", "=_"),
  contentType: unencodable.test(contentType) ? "application/octet-stream" : contentType,
  contentDisposition: contentId === undefined ? "attachment" : "inline",
  ...(contentId !== undefined && { cid: contentId }),
  contentTransferEncoding: "base64",
  content: Buffer.from(content.buffer, content.byteOffset, content.byteLength)
})
