import MailComposer from "nodemailer/lib/mail-composer"
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
export const composeMail = async ({ dateMillis, fields, messageId }: MailToCompose): Promise<Buffer> => {
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
  const mime = await composer.compile().build()
  return Buffer.concat([Buffer.from(messageHead(fields), "latin1"), mime])
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
  content
})
