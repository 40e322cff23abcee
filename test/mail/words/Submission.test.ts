import { assert, describe, it } from "vitest"
import { Result } from "effect"
import { readSubmission, type Submission } from "#streams/mail/Submission.ts"

const heads = {
  From: '"Shop, The" <shop@example.com>',
  To: "Ada <ada@example.org>",
  Subject: "Hello"
}

interface Given {
  /** in the place of, or beside, From, To and Subject; undefined: without it */
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: string
  readonly envelope?: ReadonlyArray<string>
}

const read = ({ body = "Hello, Ada.\r\n", envelope = ["ada@example.org"], headers = {} }: Given = {}) => {
  const lines = Object.entries({ ...heads, ...headers }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}\r\n`]
  )
  return readSubmission({ bytes: Buffer.from(`${lines.join("")}\r\n${body}`), envelope, nowMillis: 0 })
}

const taken = async (given: Given): Promise<Submission> => Result.getOrThrow(await read(given))

/** The field at fault, and what is wrong with it. */
const faultOf = async (given: Given): Promise<string> =>
  Result.match(await read(given), {
    onSuccess: () => "none",
    onFailure: ({ field, text }) => `${field}: ${text}`
  })

const part = (head: string, body: string) => `--x\r\n${head}\r\n\r\n${body}\r\n`
const mixed = (...parts: ReadonlyArray<string>): Given => ({
  headers: { "Content-Type": "multipart/mixed; boundary=x" },
  body: `${parts.join("")}--x--\r\n`
})

describe("a submission", () => {
  it("has the fields of a mail, and its envelope", async () => {
    const { fields, only } = await taken({
      headers: {
        To: "=?utf-8?Q?Ad=C3=A4?= <ada@example.org>, Team: b@example.org, c@example.org;",
        Cc: "d@example.org",
        "Reply-To": "help@example.com",
        Subject: "=?utf-8?B?R3LDvMOfZQ==?="
      },
      envelope: ["Ada@example.org", "c@example.org", "hidden@example.net"]
    })
    assert.deepStrictEqual(fields.from, {
      address: "shop@example.com",
      domain: "example.com",
      name: "Shop, The"
    })
    assert.deepStrictEqual(
      fields.to.map(({ address, name }) => [address, name]),
      [
        ["ada@example.org", "Adä"],
        ["b@example.org", null],
        ["c@example.org", null]
      ]
    )
    assert.deepStrictEqual(
      [fields.cc, fields.bcc, [fields.replyTo]].map((list) => list.map((mailbox) => mailbox?.address)),
      [["d@example.org"], ["hidden@example.net"], ["help@example.com"]]
    )
    assert.deepStrictEqual([...only], ["ada@example.org", "c@example.org", "hidden@example.net"])
    assert.deepStrictEqual([fields.subject, fields.text, fields.html], ["Grüße", "Hello, Ada.\n", null])
  })

  it("to blind copies alone is shown as one to its sender, who gets none", async () => {
    const { fields, only } = await taken({
      headers: { To: "undisclosed-recipients:;", Bcc: "x@example.net" }
    })
    assert.deepStrictEqual(
      [fields.to, fields.bcc].map((list) => list.map(({ address }) => address)),
      [["shop@example.com"], ["ada@example.org"]]
    )
    assert.deepStrictEqual([...only], ["ada@example.org"])
  })

  it("keeps headers that POST /send takes, by its rules, and loses the others", async () => {
    const { fields } = await taken({
      headers: {
        "Message-ID": "<1@client.test>",
        Received: "from elsewhere",
        "User-Agent": "Client/1.0",
        "X-Campaign-ID": "spring",
        "X-Folded": "one\r\n\ttwo",
        "In-Reply-To": "your mail <0@example.org>",
        References: `<first@x>${" <middle@x>".repeat(200)} <last@x>`,
        "List-Unsubscribe": "<mailto:off@example.com>, <https://example.com/off>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"
      }
    })
    const headers = Object.fromEntries(fields.headers)
    assert.deepStrictEqual(Object.keys(headers), ["X-Campaign-ID", "X-Folded", "In-Reply-To", "References"])
    assert.deepStrictEqual([headers["X-Folded"], headers["In-Reply-To"]], ["one two", "<0@example.org>"])
    assert.match(headers["References"] ?? "", /^<first@x> (?:<middle@x> )+<last@x>$/)
    assert.isAtMost(headers["References"]?.length ?? 0, 900)
    assert.deepStrictEqual(
      [fields.unsubscribeUrl, fields.campaign, fields.isBulk],
      ["https://example.com/off", "spring", true]
    )
  })

  it("has its attachments, and the pictures of its HTML by their Content-ID", async () => {
    const related =
      'Content-Type: multipart/related; boundary=y\r\n\r\n--y\r\nContent-Type: text/html\r\n\r\n<img src="cid:a@x">\r\n' +
      "--y\r\nContent-Type: image/png\r\nContent-ID: <a@x>\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC\r\n--y--"
    const { fields } = await taken(
      mixed(
        `--x\r\n${related}\r\n`,
        part("Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf", "pdf"),
        part("Content-Type: message/rfc822", "Subject: inner\r\n\r\ninner")
      )
    )
    assert.deepStrictEqual(
      fields.attachments.map(({ contentId, contentType, filename }) => [filename, contentType, contentId]),
      [
        ["attachment-1.png", "image/png", "a@x"],
        ["a.pdf", "application/pdf", undefined],
        ["attachment-3.eml", "application/octet-stream", undefined]
      ]
    )
    assert.deepStrictEqual([...(fields.attachments[0]?.content ?? [])], [0, 1, 2])
    assert.include(fields.html ?? "", "cid:a@x")
    assert.notInclude(fields.html ?? "", "inner")
  })

  it("of an attachment alone has an empty text", async () => {
    const scan = part("Content-Type: image/png; name=scan.png", "png")
    assert.strictEqual((await taken(mixed(scan))).fields.text, "\n")
  })

  it("is the same as another by its bytes, recipients and Message-ID", async () => {
    const keyOf = async (given: Given, id: string | undefined = "<1@x>") =>
      (await taken({ ...given, headers: { ...given.headers, "Message-ID": id } })).onceKey
    const known = await keyOf({ envelope: ["ada@example.org", "b@example.org"] })
    assert.match(known ?? "", /^smtp:[0-9a-f]{64}$/)
    assert.strictEqual(await keyOf({ envelope: ["B@example.org", "ada@example.org"] }), known)
    assert.notStrictEqual(await keyOf({ envelope: ["ada@example.org"] }), known)
    assert.notStrictEqual(
      await keyOf({ envelope: ["ada@example.org", "b@example.org"], body: "other" }),
      known
    )
    assert.notStrictEqual(await keyOf({ envelope: ["ada@example.org", "b@example.org"] }, "<2@x>"), known)
    assert.isNull((await taken({})).onceKey)
  })
})

describe("a submission is refused", () => {
  const refused: Readonly<Record<string, readonly [given: Given, fault: RegExp]>> = {
    "without From": [{ headers: { From: undefined } }, /^from: is required/],
    "with two of From": [{ headers: { from: "b@example.com" } }, /^from: expected one header/],
    "with two senders": [
      { headers: { From: "a@example.com, b@example.com" } },
      /^from: expected one address/
    ],
    "without Subject": [{ headers: { Subject: undefined } }, /^subject: is required/],
    "with an address that is none": [{ headers: { To: "ada@" } }, /^to\[0\]: "ada@" is not an address/],
    "with a quoted local part": [{ headers: { Cc: '"a, b"@example.org' } }, /^cc\[0\]: a quoted local part/],
    "with a command to a relay": [{ headers: { "X-SMTPAPI": "{}" } }, /^headers\.X-SMTPAPI: not allowed/],
    "with a header twice": [{ headers: { "X-A": "1", "x-a": "2" } }, /^headers\.x-a: given twice/],
    "with a line break in a name": [
      { headers: { To: "=?utf-8?Q?a=0D=0ABcc=3A_x?= <ada@example.org>" } },
      /^to\[0\]: .*control characters/
    ],
    "with 51 recipients": [
      { envelope: Array.from({ length: 50 }, (_, at) => `r${at}@example.org`) },
      /^bcc: at most 50 recipients/
    ],
    "without a body": [{ body: "" }, /^html: is required where there is no text/],
    "that is signed": [
      { headers: { "Content-Type": "multipart/signed; boundary=x" }, body: "--x\r\n\r\na\r\n--x--\r\n" },
      /^Content-Type: signed and encrypted mail/
    ],
    "with a line that ends in LF": [{ body: "a\n.\r\nb" }, /^message: a line that ends in LF alone/],
    "with CR alone": [{ body: "a\r.\r\nb" }, /^message: CR without LF/],
    "with NUL": [{ body: "a\0b" }, /^message: NUL/],
    "of parts in parts without end": [
      {
        headers: { "Content-Type": "multipart/mixed; boundary=x0" },
        body: Array.from(
          { length: 40 },
          (_, at) => `--x${at}\r\nContent-Type: multipart/mixed; boundary=x${at + 1}\r\n\r\n`
        ).join("")
      },
      /^message: .*depth/i
    ]
  }
  for (const [how, [given, expected]] of Object.entries(refused))
    it(how, async () => {
      assert.match(await faultOf(given), expected)
    })
})
