/** Mails as servers and providers write them, with CRLF. */
const crlf = (lines: ReadonlyArray<string>): Buffer<ArrayBuffer> => Buffer.from(lines.join("\r\n"))

/** A group of `message/delivery-status`, as Postfix writes it. */
export interface StatusGroup {
  readonly address: string
  readonly original?: string
  readonly action?: string
  readonly status?: string
  readonly diagnostic?: string
}

const groupOf = ({
  action = "failed",
  address,
  diagnostic = "550 5.1.1 no such user",
  original,
  status = "5.1.1"
}: StatusGroup): ReadonlyArray<string> => [
  "",
  `Final-Recipient: rfc822; ${address}`,
  ...(original === undefined ? [] : [`Original-Recipient: rfc822;${original}`]),
  `Action: ${action}`,
  ...(status === "" ? [] : [`Status: ${status}`]),
  ...(diagnostic === "" ? [] : [`Diagnostic-Code: smtp; ${diagnostic}`])
]

export interface ReportOf {
  readonly to?: string
  readonly messageId?: string
  readonly returnPath?: string
}

const originalOf = ({ messageId, returnPath }: ReportOf): ReadonlyArray<string> => [
  "--b1",
  "Content-Type: text/rfc822-headers",
  "",
  ...(returnPath === undefined ? [] : [`Return-Path: <${returnPath}>`]),
  "To: Ada <ada@example.org>",
  "Subject: Hello",
  ...(messageId === undefined ? [] : ["Message-ID:", ` <${messageId}>`]),
  "",
  "--b1--",
  ""
]

/** A delivery status notification. Source: RFC 3464, appendix E. */
export const dsnOf = (groups: ReadonlyArray<StatusGroup>, of: ReportOf = {}): Buffer<ArrayBuffer> =>
  crlf([
    "From: MAILER-DAEMON@mx.example.org (Mail Delivery System)",
    `To: ${of.to ?? "shop@example.com"}`,
    "Subject: Undelivered Mail Returned to Sender",
    "Auto-Submitted: auto-replied",
    "MIME-Version: 1.0",
    'Content-Type: multipart/report; report-type=delivery-status; boundary="b1"',
    "",
    "--b1",
    "Content-Type: text/plain; charset=us-ascii",
    "",
    "I'm sorry to have to inform you that your message could not be delivered.",
    "",
    "--b1",
    "Content-Type: message/delivery-status",
    "",
    "Reporting-MTA: dns; mx.example.org",
    "Arrival-Date: Sat, 21 Nov 2026 08:30:00 +0000",
    ...groups.flatMap(groupOf),
    "",
    ...originalOf(of)
  ])

/** A complaint in the abuse reporting format. Source: RFC 5965, appendix B. */
export const arfOf = (fields: ReadonlyArray<string>, of: ReportOf = {}): Buffer<ArrayBuffer> =>
  crlf([
    "From: <feedback@provider.example>",
    `To: ${of.to ?? "abuse@example.com"}`,
    "Subject: FW: Hello",
    "MIME-Version: 1.0",
    "Content-Type: multipart/report; report-type=feedback-report;",
    '  boundary="b1"',
    "",
    "--b1",
    "Content-Type: text/plain",
    "",
    "This is an email abuse report.",
    "--b1",
    "Content-Type: message/feedback-report",
    "",
    ...fields,
    "",
    ...originalOf(of)
  ])

/** The answer of somebody who is away. Source: RFC 3834. */
export const outOfOffice = crlf([
  "From: Ada <ada@example.org>",
  "To: shop@example.com",
  "Subject: Out of office",
  "Auto-Submitted: auto-replied",
  "Content-Type: text/plain",
  "",
  "Final-Recipient: rfc822; ada@example.org",
  "Action: failed",
  "Status: 5.1.1",
  ""
])
