import { hash } from "node:crypto"
import PostalMime, {
  type Address,
  addressParser,
  type Attachment,
  decodeWords,
  type Email
} from "postal-mime"
import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import type { MailFields } from "./MailFields.ts"
import { readMailFields } from "./MailReading.ts"

/** A message that came by SMTP, as a mail that `POST /send` would take. */
export interface Submission {
  readonly fields: MailFields
  /** those of the envelope, in lower case: nobody else whom the headers name gets it */
  readonly only: ReadonlySet<string>
  /** The same for the same bytes to the same recipients; null: the message has no Message-ID. */
  readonly onceKey: string | null
}

/** A submission that was read in a thread, or its fault. */
export type ReadSubmission = { readonly submission: Submission } | { readonly fault: FieldFault }

export interface SubmissionAsk {
  readonly bytes: Uint8Array
  /** the addresses of RCPT, each as `readAddress` gives it */
  readonly envelope: ReadonlyArray<string>
  readonly nowMillis: number
}

type Read<A> = Result.Result<A, FieldFault>

const fault = (field: string, text: string): Result.Result<never, FieldFault> => Result.fail({ field, text })

const partsDepthMax = 32
const headersBytesMax = 256 * 1024

/**
 * Reads a message by the rules of `POST /send`. Headers that it does not take are left out. Those of the envelope whom no
 * header names get blind copies. Source: contract/mail#submission.
 */
export const readSubmission = async ({
  bytes,
  envelope,
  nowMillis
}: SubmissionAsk): Promise<Read<Submission>> => {
  const unfit = lineFaultOf(bytes)
  if (unfit !== undefined) return fault("message", unfit)
  const email = await parsed(bytes)
  if (typeof email === "string") return fault("message", email)
  return Result.gen(function* () {
    const body = yield* bodyOf(email, envelope)
    const { attachments, ...fields } = yield* readMailFields(body, nowMillis)
    const identified = attachments.map((attachment, index) => {
      const contentId = contentIdOf(email.attachments[index])
      return contentId === undefined ? attachment : { ...attachment, contentId }
    })
    const only = new Set(envelope.map((address) => address.toLowerCase()))
    const { messageId } = email
    const onceKey = messageId === undefined ? null : onceKeyOf(bytes, [messageId, ...[...only].toSorted()])
    return { fields: { ...fields, attachments: identified }, only, onceKey }
  })
}

const onceKeyOf = (bytes: Uint8Array, names: ReadonlyArray<string>): string =>
  `smtp:${hash("sha256", `${JSON.stringify(names)}${hash("sha256", bytes)}`)}`

const cr = 13
const lf = 10

/** Servers disagree on where lines with such ends end, and so on where a message does. Source: RFC 5321, 2.3.8. */
const lineFaultOf = (bytes: Uint8Array): string | undefined => {
  if (bytes.includes(0)) return "NUL is not taken"
  for (let at = bytes.indexOf(lf); at >= 0; at = bytes.indexOf(lf, at + 1))
    if (bytes[at - 1] !== cr) return "a line that ends in LF alone is not taken"
  for (let at = bytes.indexOf(cr); at >= 0; at = bytes.indexOf(cr, at + 1))
    if (bytes[at + 1] !== lf) return "CR without LF is not taken"
  return undefined
}

/** A text is the reason why the parser refuses it. */
const parsed = async (bytes: Uint8Array): Promise<Email | string> => {
  try {
    return await PostalMime.parse(bytes, {
      attachmentEncoding: "base64",
      forceRfc822Attachments: true,
      maxNestingDepth: partsDepthMax,
      maxHeadersSize: headersBytesMax
    })
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Such a part is signed or encrypted as it is, and would be worth nothing composed anew. */
const unbroken = /^(?:multipart\/(?:signed|encrypted)|application\/(?:x-)?pkcs7-mime)\b/i

const bodyOf = (email: Email, envelope: ReadonlyArray<string>): Read<object> =>
  Result.gen(function* () {
    const type = email.headers.find(({ key }) => key === "content-type")?.value ?? ""
    if (unbroken.test(type))
      yield* fault("Content-Type", "signed and encrypted mail is not taken: it is composed anew here")
    const froms = email.headers.filter(({ key }) => key === "from")
    if (froms.length > 1) yield* fault("from", "expected one header")
    const from = yield* addressesOf("from", addressParser(froms[0]?.value ?? ""))
    const to = yield* addressesOf("to", email.to)
    const cc = yield* addressesOf("cc", email.cc)
    const replyTo = yield* addressesOf("reply_to", email.replyTo)
    const { attachments, html, subject, text } = email
    const isEmpty = text === undefined && html === undefined && attachments.length > 0
    return {
      from,
      // A mail to blind copies alone is shown as one to its sender.
      to: to ?? from,
      cc,
      bcc: envelope.join(", "),
      reply_to: replyTo,
      subject,
      html,
      text: isEmpty ? "\n" : text,
      attachments: attachments.map(({ content, ...attachment }, index) => ({
        filename: filenameOf(attachment, index),
        content
      })),
      headers: yield* headersOf(email)
    }
  })

const addressesOf = (
  field: string,
  addresses: ReadonlyArray<Address> | undefined
): Read<string | undefined> => {
  const mailboxes = (addresses ?? []).flatMap((address) => address.group ?? [address])
  const texts: Array<string> = []
  for (const [index, { address, name }] of mailboxes.entries()) {
    if (/[\s<>,"\\]/.test(address)) return fault(`${field}[${index}]`, "a quoted local part is not taken")
    texts.push(name === "" ? address : `"${name.replace(/["\\]/g, String.raw`\$&`)}" <${address}>`)
  }
  return Result.succeed(texts.length === 0 ? undefined : texts.join(", "))
}

const extensions: Readonly<Record<string, string>> = {
  "message/rfc822": "eml",
  "text/calendar": "ics",
  "text/plain": "txt"
}

/** Types follow from names here, so that a part without one gets a name. */
const filenameOf = ({ filename, mimeType }: Pick<Attachment, "filename" | "mimeType">, index: number) => {
  if (filename !== null && filename !== "") return filename
  const [, subtype] = /^[a-z]+\/([a-z0-9]{1,5})$/.exec(mimeType) ?? []
  return `attachment-${index + 1}.${extensions[mimeType] ?? subtype ?? "bin"}`
}

/** Of a part that the HTML shows. */
const contentIdOf = (attachment: Attachment | undefined): string | undefined => {
  if (attachment?.related !== true) return undefined
  return /^<?([!-;=?-~]{1,200}?)>?$/.exec(attachment.contentId ?? "")?.[1]
}

const taken = /^(?:x-.*|in-reply-to|references|auto-submitted|list-unsubscribe)$/

const headersOf = ({ headers }: Email): Read<Readonly<Record<string, string>>> => {
  const found = new Map<string, readonly [name: string, value: string]>()
  for (const { key, originalKey, value } of headers) {
    const text = taken.test(key) ? valueOf(key, decodeWords(value).replace(/\s+/g, " ").trim()) : ""
    if (text === "") continue
    if (found.has(key)) return fault(`headers.${key}`, "given twice")
    found.set(key, [originalKey, text])
  }
  return Result.succeed(Object.fromEntries(found.values()))
}

const valueOf = (key: string, value: string): string => {
  if (key === "in-reply-to" || key === "references") return idsOf(value)
  // Of the addresses, which are for mail programs, that of the web is taken.
  if (key === "list-unsubscribe") return /<(https?:[^<>]+)>/i.exec(value)?.[1] ?? ""
  return value
}

const idsLengthMax = 900

/** Without what stands between message ids. Of a thread that is too long the first and the last ones are kept. */
const idsOf = (value: string): string => {
  const [first = "", ...ids] = value.match(/<[^<>\s]+>/g) ?? []
  const kept: Array<string> = []
  let length = first.length
  for (const id of ids.toReversed()) {
    length += id.length + 1
    if (length > idsLengthMax) break
    kept.unshift(id)
  }
  return [first, ...kept].join(" ")
}
