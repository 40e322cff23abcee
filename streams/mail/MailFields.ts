/** An address that mail can be sent to, with the name that is shown beside it. */
export interface Mailbox {
  /** the local part as it was written, `@`, and the domain in lower-case ASCII */
  readonly address: string
  readonly domain: string
  readonly name: string | null
}

export interface MailAttachment {
  /** without directories */
  readonly filename: string
  readonly contentType: string
  /** no `Buffer` where a thread has read the mail */
  readonly content: Uint8Array<ArrayBuffer>
  /** by which the HTML shows it, as `cid:…`, without angle brackets */
  readonly contentId?: string
}

/** A mail as its sender asked for it, checked. Source: RFC 5322. */
export interface MailFields {
  readonly from: Mailbox
  /** an address is in one of the three lists, once: the first of to, cc, bcc that has it */
  readonly to: ReadonlyArray<Mailbox>
  readonly cc: ReadonlyArray<Mailbox>
  readonly bcc: ReadonlyArray<Mailbox>
  readonly replyTo: Mailbox | null
  readonly subject: string
  /** one of the two is there at least */
  readonly html: string | null
  readonly text: string | null
  readonly attachments: ReadonlyArray<MailAttachment>
  /** custom headers, without the unsubscribe URL; `X-Campaign-ID` is among them */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly unsubscribeUrl: string | null
  readonly campaign: string | null
  /** it gets an unsubscribe link, and goes to no one who has opted out: a URL, a campaign or `unsubscribe: true` */
  readonly isBulk: boolean
  readonly sendAtMillis: number | null
}
