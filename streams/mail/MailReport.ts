import PostalMime, { type Attachment, type Email } from "postal-mime"
import { addressOf } from "./Addresses.ts"
import { type BounceType, type ReportedEnd, typeOfFailure } from "./BounceType.ts"
import { type Fields, fieldGroupsOf, fieldsOf } from "./ReportFields.ts"

/** A recipient of a mail that came back, or was complained of. */
export interface ReportedRecipient extends ReportedEnd {
  /** in lower case: as the sender wrote it, and where it was forwarded to; empty: the report does not tell */
  readonly addresses: ReadonlyArray<string>
}

/** A report on one mail: of a server that could not deliver it (RFC 3464), or of a reader who did not want it (RFC 5965). */
export interface MailReport {
  /** the last is at most `recipientsMax` */
  readonly recipients: ReadonlyArray<ReportedRecipient>
  /** of the mail that it is about, without angle brackets */
  readonly messageId: string | undefined
  /** addresses that may be the return path of the mail that it is about */
  readonly returnPaths: ReadonlyArray<string>
}

/** Bytes of a report that are read: what counts comes before the copy of the mail that it is about. */
export const reportBytesMax = 256 * 1024

/** Recipients of one report that are read: no mail of this server has more. */
const recipientsMax = 50

/** Forms of multiparts within others that are read. */
const depthMax = 10

/** Addresses of a header that are read. */
const addressesMax = 50

/**
 * Reads a mail that may be a report, from its first 256 KiB. Undefined: it is another one, such as the answer of somebody who is
 * away, or no mail at all. A report without recipients says nothing that ends a delivery, such as that it is late.
 */
export const readMailReport = (raw: Uint8Array): Promise<MailReport | undefined> =>
  PostalMime.parse(raw.subarray(0, reportBytesMax), {
    forceRfc822Attachments: true,
    maxNestingDepth: depthMax,
    maxHeadersSize: reportBytesMax
    // The parser refuses what is nested deeper, and nothing else: that is no report.
  }).then(reportIn, () => undefined)

const isReport = ({ headers }: Email): boolean =>
  /^\s*multipart\/report\b/i.test(headers.find(({ key }) => key === "content-type")?.value ?? "")

const reportIn = (mail: Email): MailReport | undefined => {
  if (!isReport(mail)) return undefined
  const part = (...types: ReadonlyArray<string>) => {
    const found = mail.attachments.find(({ mimeType }) => types.includes(mimeType))
    return found === undefined ? undefined : textOf(found)
  }
  const status = part("message/delivery-status", "message/global-delivery-status")
  const feedback = part("message/feedback-report")
  const recipients = status === undefined ? complainersIn(feedback) : failuresIn(status)
  if (recipients === undefined) return undefined
  const original = fieldsOf(
    part(
      "message/rfc822",
      "text/rfc822-headers",
      "message/rfc822-headers",
      "message/global",
      "message/global-headers"
    ) ?? ""
  )
  const feedbackFields = fieldsOf(feedback ?? "")
  return {
    recipients: recipients.map((recipient) =>
      recipient.type === "complaint" && recipient.addresses.length === 0
        ? { ...recipient, addresses: addressesIn(original, "to") }
        : recipient
    ),
    messageId: /<([^<>\s]{1,400})>/.exec(original.get("message-id")?.[0] ?? "")?.[1],
    returnPaths: [
      ...(mail.to ?? []).flatMap(({ address }) => address ?? []),
      ...addressesIn(feedbackFields, "original-mail-from"),
      ...addressesIn(original, "return-path")
    ].slice(0, addressesMax)
  }
}

const textOf = ({ content }: Attachment): string =>
  typeof content === "string" ? content : new TextDecoder().decode(content)

const addressIn = (value: string): ReadonlyArray<string> => {
  // `rfc822; ada@example.org`, `<ada@example.org>` or `Ada <ada@example.org>`
  const text = value.replace(/^[^;@]{0,40};/, "")
  const bare = /<([^<>]*)>\s*$/.exec(text)?.[1] ?? text
  const address = addressOf(bare.trim())?.address.toLowerCase()
  return address === undefined ? [] : [address]
}

const addressesIn = (fields: Fields, ...names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.flatMap((name) =>
    (fields.get(name) ?? []).flatMap((value) => value.split(",").slice(0, addressesMax).flatMap(addressIn))
  )

/** The recipients that the mail did not reach, for good. Source: RFC 3464, 2.3. */
const failuresIn = (status: string): ReadonlyArray<ReportedRecipient> => {
  // The first group is of the message.
  const [, ...groups] = fieldGroupsOf(status, recipientsMax + 1)
  return groups.flatMap((fields) => {
    if (!/^failed\b/i.test(fields.get("action")?.[0] ?? "")) return []
    const addresses = addressesIn(fields, "original-recipient", "final-recipient")
    const [code = ""] = /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(fields.get("status")?.[0] ?? "") ?? []
    const diagnostic = (fields.get("diagnostic-code")?.[0] ?? "").replace(/^[^;]{0,40};\s*/, "")
    const detail = diagnostic === "" ? `${code} not delivered`.trim() : diagnostic
    return [{ addresses, ...typeOfFailure(code, diagnostic), detail }]
  })
}

/** Such a report says that the mail was wanted, or is about its signatures (RFC 6591). */
const isNoComplaint = /^\s*(?:not-spam|auth-failure)\b/i

/** The recipient who complained. Undefined: there is no report. Source: RFC 5965, 3. */
const complainersIn = (feedback: string | undefined): ReadonlyArray<ReportedRecipient> | undefined => {
  if (feedback === undefined) return undefined
  const fields = fieldsOf(feedback)
  const [kind = ""] = fields.get("feedback-type") ?? []
  if (kind === "" || isNoComplaint.test(kind)) return []
  const type: BounceType = "complaint"
  const addresses = addressesIn(fields, "original-rcpt-to", "removal-recipient")
  const recipient = { type, isFailed: false, detail: `complained of: ${kind.trim()}` }
  return addresses.length === 0
    ? [{ ...recipient, addresses }]
    : addresses.slice(0, recipientsMax).map((address) => ({ ...recipient, addresses: [address] }))
}
