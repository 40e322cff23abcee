import * as fc from "fast-check"
import type { Mailbox, MailAttachment, MailFields } from "#streams/mail/MailFields.ts"

/** A mail as the reader of requests accepts it: names, subjects and values of headers are trimmed and without controls. */
export const mailOf = (changes: Partial<MailFields>): MailFields => ({
  from: { address: "shop@example.com", domain: "example.com", name: null },
  to: [{ address: "ann@example.org", domain: "example.org", name: null }],
  cc: [],
  bcc: [],
  replyTo: null,
  subject: "Hello",
  html: null,
  text: "Hello\r\n",
  attachments: [],
  headers: [],
  unsubscribeUrl: null,
  campaign: null,
  isBulk: false,
  sendAtMillis: null,
  ...changes
})

/** Characters that formats of mail give a meaning to, among others. */
const characters = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(..."abcXYZ019") },
  { weight: 3, arbitrary: fc.constantFrom(...` .,;:<>()[]@\\"'=?_%*/&-+#{}|`) },
  { weight: 1, arbitrary: fc.constantFrom("é", "ß", "日本", "🎉", "👩‍👧", "Ω", "\u00a0", "\u2028", "אב") },
  {
    weight: 1,
    arbitrary: fc.constantFrom("=?utf-8?q?x?=", "=?utf-8?Q?a b?=", "?=", "utf-8''%41", "x".repeat(90))
  }
)

const wordsOf = (maxLength: number) =>
  fc.array(characters, { minLength: 1, maxLength }).map((parts) => parts.join("").trim())

export const lineTexts = wordsOf(120).map((text) => [...text].slice(0, 400).join("").trim() || "x")
const names = wordsOf(30).map((text) => text.replace(/ {2,}/g, " ").trim() || null)

const atoms = fc
  .array(fc.constantFrom(..."abcdz0189!#$%&'*+/=?^_`{|}~-"), { minLength: 1, maxLength: 20 })
  .map((parts) => parts.join(""))
const locals = fc.array(atoms, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("."))
const domains = fc.constantFrom(
  "example.com",
  "mail.example.org",
  "xn--jgeva-dua.ee",
  `${"d".repeat(63)}.example`
)

const mailboxes: fc.Arbitrary<Mailbox> = fc
  .record({ local: locals, domain: domains, name: fc.option(names) })
  .map(({ domain, local, name }) => ({ address: `${local}@${domain}`, domain, name }))

/** Of bcc alone: nothing of a message may have it. */
export const hiddenDomain = "hidden.example"
const hidden = mailboxes.map(({ address, name }) => ({
  address: address.replace(/@.*/, `@${hiddenDomain}`),
  domain: hiddenDomain,
  name
}))

const bodies = fc
  .array(
    fc.oneof(
      characters,
      fc.constantFrom("\n", "\r\n", "\r", " \n", "\t", "<p>", "</p>", ".\n", "From ", "--")
    ),
    { maxLength: 200 }
  )
  .map((parts) => parts.join(""))

const fileNames = wordsOf(40)
  .map((text) => [...text.replace(/[/\\]/g, "_")].slice(0, 200).join("").trim())
  .map((text) => text || "file")

const attachments: fc.Arbitrary<MailAttachment> = fc.record({
  filename: fileNames,
  contentType: fc.constantFrom(
    "text/plain",
    "text/html",
    "image/png",
    "application/pdf",
    "message/rfc822",
    "multipart/mixed"
  ),
  content: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))
})

const customHeaders = fc.oneof(
  fc.tuple(fc.constantFrom("X-Priority", "x-campaign-id", "X-Foo-Bar", "X-ID"), lineTexts),
  fc.tuple(
    fc.constantFrom("In-Reply-To", "References"),
    fc
      .array(
        locals.map((local) => `<${local}@example.com>`),
        { minLength: 1, maxLength: 12 }
      )
      .map((ids) => ids.join(" "))
  )
)

export const mails: fc.Arbitrary<MailFields> = fc
  .record({
    from: mailboxes,
    to: fc.array(mailboxes, { minLength: 1, maxLength: 5 }),
    cc: fc.array(mailboxes, { maxLength: 3 }),
    bcc: fc.array(hidden, { maxLength: 3 }),
    replyTo: fc.option(mailboxes),
    subject: lineTexts,
    body: fc.oneof(
      fc.record({ html: bodies, text: fc.constant(null) }),
      fc.record({ html: fc.constant(null), text: bodies }),
      fc.record({ html: bodies, text: bodies })
    ),
    attachments: fc.array(attachments, { maxLength: 3 }),
    headers: fc.uniqueArray(customHeaders, { maxLength: 4, selector: ([name]) => name.toLowerCase() })
  })
  .map(({ body, ...mail }) => mailOf({ ...mail, ...body }))
