import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import PostalMime, { type Address, decodeWords, type Email } from "postal-mime"
import { composeMail } from "#src/mail/composing/Compose.ts"
import type { Mailbox, MailFields } from "#streams/mail/MailFields.ts"
import { hiddenDomain, lineTexts, mailOf, mails } from "./Mails.ts"

const seed = Number(process.env["MAIL_SEED"] ?? Date.now() % 2_147_483_647)
const numRuns = Number(process.env["MAIL_COMPOSED"] ?? 300)

const messageId = "<eml_1@example.com>"
const dateMillis = Date.UTC(2026, 1, 3, 4, 5, 6)

const composed = (fields: MailFields): Buffer => composeMail({ fields, messageId, dateMillis })

const parsed = async (raw: Buffer): Promise<Email> =>
  PostalMime.parse(raw, { attachmentEncoding: "arraybuffer" })

const headOf = (raw: Buffer): string => raw.toString("latin1", 0, raw.indexOf("\r\n\r\n"))

/** Names of the headers of a message, as they are there. */
const namesIn = (raw: Buffer): ReadonlyArray<string> =>
  headOf(raw)
    .split(/\r\n(?![ \t])/)
    .map((line) => line.slice(0, line.indexOf(":")).toLowerCase())

/** Text as a receiver has it: lines, without empty ones at the end. */
const linesOf = (text: string): string => text.replace(/\r\n|\r/g, "\n").replace(/\n+$/, "")

const mailboxOf = (address: Address | undefined) => ({ name: address?.name ?? "", address: address?.address })
const givenOf = ({ address, name }: Mailbox) => ({ name: name ?? "", address })

const sameMailboxes = (found: ReadonlyArray<Address> | undefined, given: ReadonlyArray<Mailbox>): void =>
  assert.deepStrictEqual((found ?? []).map(mailboxOf), given.map(givenOf))

const bytesOf = (content: unknown): Buffer =>
  content instanceof ArrayBuffer ? Buffer.from(content) : assert.fail("an attachment has no bytes")

/** The decoded bytes of the part of a type: parsers make text of them. */
const partBytes = (raw: Buffer, type: string): Buffer => {
  const text = raw.toString("latin1")
  const at = text.indexOf(`Content-Type: ${type}`)
  const from = text.indexOf("\r\n\r\n", at) + 4
  const end = text.indexOf("\r\n--", from)
  assert.isAbove(at, -1, type)
  return Buffer.from(text.slice(from, end < 0 ? undefined : end), "base64")
}

const checkMail = async (fields: MailFields): Promise<void> => {
  const raw = composed(fields)
  const text = raw.toString("latin1")
  assert.notMatch(text, /[^\r\n\t\x20-\x7e]|\r(?!\n)|(?<!\r)\n/, "bytes that are not for mail")
  for (const line of text.split("\r\n")) assert.isAtMost(line.length, 998)

  const mail = await parsed(raw)
  sameMailboxes(mail.from === undefined ? [] : [mail.from], [fields.from])
  sameMailboxes(mail.to, fields.to)
  sameMailboxes(mail.cc, fields.cc)
  sameMailboxes(mail.replyTo, fields.replyTo === null ? [] : [fields.replyTo])
  assert.isUndefined(mail.bcc)
  assert.notInclude(text, hiddenDomain)
  assert.strictEqual(mail.subject, fields.subject)
  assert.strictEqual(mail.messageId, messageId)
  assert.strictEqual(Date.parse(mail.date ?? ""), dateMillis)

  assert.deepStrictEqual(linesOf(mail.text ?? ""), linesOf(fields.text ?? ""))
  if (fields.html === null || fields.html === "") assert.notProperty(mail, "html")
  else assert.strictEqual(partBytes(raw, "text/html").toString("utf8"), fields.html)

  assert.deepStrictEqual(
    mail.attachments.map(({ content, disposition, filename }) => ({
      filename,
      disposition,
      bytes: bytesOf(content)
    })),
    fields.attachments.map(({ content, filename }) => ({
      filename: filename.replaceAll("=?", "=_"),
      disposition: "attachment",
      bytes: Buffer.from(content)
    }))
  )
  const values = new Map(mail.headers.map(({ key, value }) => [key, decodeWords(value)]))
  for (const [name, value] of fields.headers) assert.strictEqual(values.get(name.toLowerCase()), value)
  const given = fields.headers.map(([name]) => name.toLowerCase())
  const optional = [...(fields.cc.length > 0 ? ["cc"] : []), ...(fields.replyTo === null ? [] : ["reply-to"])]
  const own = ["from", "to", "subject", "message-id", "date", "mime-version", "content-type"]
  const names = namesIn(raw).filter((name) => name !== "content-transfer-encoding")
  assert.deepStrictEqual(names.toSorted(), [...own, ...optional, ...given].toSorted())
}

describe("a composed message", () => {
  it(`has what was asked for and nothing else (seed ${seed})`, async () => {
    await fc.assert(fc.asyncProperty(mails, checkMail), { numRuns, seed })
  }, 600_000)

  it("breaks no header at what its text has", async () => {
    const texts = [
      "x".repeat(998),
      "é".repeat(998),
      `${"a ".repeat(400)}b`,
      "a  b",
      "=?utf-8?Q?Bcc:?=",
      '"quoted" \\ (comment), <a@b.example>; list:',
      "🎉".repeat(300)
    ]
    for (const text of texts) {
      const short = [...text].slice(0, 200).join("").replace(/ {2,}/g, " ").trim()
      const from = { address: "a@example.com", domain: "example.com", name: short }
      await checkMail(mailOf({ subject: text, from, to: [from], headers: [["X-Text", text.slice(0, 990)]] }))
    }
    const subjects = fc.asyncProperty(lineTexts, (subject) => checkMail(mailOf({ subject })))
    await fc.assert(subjects, { numRuns, seed })
  }, 600_000)

  it("keeps identifiers whole, however long, and lines below 998 characters", async () => {
    const domain = `${`${"d".repeat(60)}.`.repeat(4)}example`
    const long = `<${"i".repeat(970)}@e.example>`
    const ids = Array.from({ length: 25 }, (_, index) => `<${index}.${"i".repeat(20)}@example.com>`)
    const headers = [["In-Reply-To", long] as const, ["References", ids.join("  ")] as const]
    const id = `<eml_1@${domain}>`
    const raw = composeMail({ fields: mailOf({ headers }), messageId: id, dateMillis })
    for (const line of raw.toString("latin1").split("\r\n")) assert.isAtMost(line.length, 998)
    const { inReplyTo, messageId: found, references } = await parsed(raw)
    assert.deepStrictEqual([found, inReplyTo, references], [id, long, ids.join(" ")])
  })

  it("has text and HTML as alternatives, before the attachments", async () => {
    const file = { filename: "a.eml", contentType: "message/rfc822", content: Buffer.from("From: x\n\nÿ") }
    const raw = composed(mailOf({ html: "<p>x</p>\n", attachments: [file] }))
    const types = Array.from(
      raw.toString("latin1").matchAll(/^Content-Type: ([\w/-]+)/gm),
      (match) => match[1]
    )
    assert.deepStrictEqual(types, [
      "multipart/mixed",
      "multipart/alternative",
      "text/plain",
      "text/html",
      "application/octet-stream"
    ])
  })

  it("reads no file and asks no server, whatever the attachments are called", async () => {
    for (const filename of ["/etc/passwd", "http://127.0.0.1:9/x", "data:text/plain,x"]) {
      const attachment = { filename, contentType: "text/plain", content: Buffer.alloc(0) }
      const mail = await parsed(composed(mailOf({ attachments: [attachment] })))
      assert.deepStrictEqual(
        mail.attachments.map(({ content }) => bytesOf(content).length),
        [0]
      )
    }
  })

  it("has the pictures of its HTML beside it, by their Content-ID", async () => {
    const picture = { filename: "a.png", contentType: "image/png", content: Buffer.from([0, 1, 2]) }
    const raw = composed(
      mailOf({ html: '<img src="cid:a@x">', attachments: [{ ...picture, contentId: "a@x" }, picture] })
    )
    const { attachments } = await parsed(raw)
    assert.deepStrictEqual(
      attachments.map(({ contentId, disposition, related }) => [contentId, disposition, related]),
      [
        ["<a@x>", "inline", true],
        [undefined, "attachment", undefined]
      ]
    )
  })
})
