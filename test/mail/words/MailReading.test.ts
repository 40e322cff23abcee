import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { readMailFields } from "#streams/mail/MailReading.ts"

const now = Date.parse("2026-11-23T12:00:00Z")
const base = { from: "a@b.de", to: "c@d.de", subject: "s", html: "<p>h</p>" }

const faultIn = (body: unknown): string | undefined => {
  const read = readMailFields(body, now)
  return Result.isFailure(read) ? `${read.failure.field}: ${read.failure.text}` : undefined
}
const faultOf = (fields: object) => faultIn({ ...base, ...fields })
const fieldsOf = (fields: object) => Result.getOrThrow(readMailFields({ ...base, ...fields }, now))

const addresses = (count: number, prefix = "a") =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}@d.de`).join(",")
const mailbox = (address: string, name: string | null = null) => ({
  address,
  domain: address.split("@")[1] ?? "",
  name
})

describe("the fields of a mail", () => {
  it("are what the contract asks for, the rest absent", () => {
    assert.deepStrictEqual(fieldsOf({ unknown: 1 }), {
      from: mailbox("a@b.de"),
      to: [mailbox("c@d.de")],
      cc: [],
      bcc: [],
      replyTo: null,
      subject: "s",
      html: "<p>h</p>",
      text: null,
      attachments: [],
      headers: [],
      unsubscribeUrl: null,
      campaign: null,
      isBulk: false,
      sendAtMillis: null
    })
  })

  it("are all of them, when all are given", () => {
    const given = {
      name: "Acme, Inc.",
      cc: "C <cc@d.de>",
      bcc: "bcc@d.de",
      reply_to: '"Support" <r@b.de>',
      text: "t",
      attachments: [{ filename: "a.PDF", content: "Zm9v" }],
      headers: { "X-Campaign-ID": "c1", "List-Unsubscribe": "<https://e.de/u>", "X-Priority": "1" },
      send_at: "2026-11-23T13:00:00+01:00",
      unsubscribe: false
    }
    assert.deepStrictEqual(fieldsOf(given), {
      from: mailbox("a@b.de", "Acme, Inc."),
      to: [mailbox("c@d.de")],
      cc: [mailbox("cc@d.de", "C")],
      bcc: [mailbox("bcc@d.de")],
      replyTo: mailbox("r@b.de", "Support"),
      subject: "s",
      html: "<p>h</p>",
      text: "t",
      attachments: [{ filename: "a.PDF", contentType: "application/pdf", content: Buffer.from("foo") }],
      headers: [
        ["X-Campaign-ID", "c1"],
        ["X-Priority", "1"]
      ],
      unsubscribeUrl: "https://e.de/u",
      campaign: "c1",
      isBulk: true,
      sendAtMillis: now
    })
  })

  it("mean the same as null and as absent, and as empty text where they may be absent", () => {
    const names = [
      "name",
      "cc",
      "bcc",
      "reply_to",
      "text",
      "attachments",
      "headers",
      "send_at",
      "unsubscribe"
    ]
    const all = (value: unknown, from = names) => Object.fromEntries(from.map((name) => [name, value]))
    assert.deepStrictEqual(fieldsOf(all(null)), fieldsOf({}))
    assert.deepStrictEqual(fieldsOf(all("", names.slice(0, 5))), fieldsOf({}))
  })

  it("are required: from, to, subject, and html or text", () => {
    assert.strictEqual(faultIn({}), "from: is required")
    for (const value of [undefined, null]) {
      assert.strictEqual(faultOf({ from: value }), "from: is required")
      assert.strictEqual(faultOf({ to: value }), "to: is required")
      assert.strictEqual(faultOf({ subject: value }), "subject: is required")
      assert.strictEqual(faultOf({ html: value }), "html: is required where there is no text")
    }
    assert.strictEqual(faultOf({ html: "" }), "html: is required where there is no text")
    assert.deepInclude(fieldsOf({ html: null, text: "t" }), { html: null, text: "t" })
  })

  it("are refused by name where they are of another kind, and whole where they are no object", () => {
    for (const name of ["from", "name", "to", "cc", "bcc", "reply_to", "html", "text"])
      for (const value of [1, true, {}, ["a@b.de"]])
        assert.strictEqual(faultOf({ [name]: value }), `${name}: expected text`)
    for (const value of [[], null, "x", 1, undefined])
      assert.strictEqual(faultIn(value), "body: expected object")
    assert.strictEqual(faultIn(Object.create(base)), "from: is required")
  })

  it("never throw, whatever is given", () => {
    // oxlint-disable-next-line no-sparse-arrays -- such an array is given
    assert.strictEqual(faultOf({ attachments: [,] }), faultOf({ attachments: [undefined] }))
    const names = [
      "from",
      "name",
      "to",
      "cc",
      "bcc",
      "reply_to",
      "subject",
      "html",
      "text",
      "attachments",
      "headers",
      "send_at"
    ]
    const anything = fc.anything({
      withNullPrototype: true,
      withBigInt: true,
      withDate: true,
      withSparseArray: true
    })
    fc.assert(fc.property(anything, (value) => void readMailFields(value, now)))
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), anything), (fields) => void faultOf(fields))
    )
  })
})

describe("addresses of a mail", () => {
  it("tell their faults by field and place", () => {
    assert.strictEqual(faultOf({ to: "x@y.de, a@" }), 'to[1]: "a@" is not an address')
    assert.strictEqual(faultOf({ cc: "a@" }), 'cc[0]: "a@" is not an address')
    assert.strictEqual(faultOf({ bcc: "a@" }), 'bcc[0]: "a@" is not an address')
    assert.strictEqual(faultOf({ from: "a@" }), 'from: "a@" is not an address')
    assert.strictEqual(faultOf({ from: "a@b.de, c@d.de" }), "from: expected one address")
    assert.strictEqual(faultOf({ reply_to: "a@b.de, c@d.de" }), "reply_to: expected one address")
    assert.strictEqual(faultOf({ to: "" }), 'to[0]: "" is not an address')
    assert.strictEqual(faultOf({ name: "a\r\nBcc: x@y.de" }), "name: control characters are not taken")
    assert.strictEqual(
      faultOf({ name: "\u202eknaB" }),
      "name: controls of the direction of text are not taken"
    )
  })

  it("have the name that `name` gives, which wins over one in `from`", () => {
    assert.strictEqual(fieldsOf({ from: "A <a@b.de>" }).from.name, "A")
    assert.strictEqual(fieldsOf({ from: "A <a@b.de>", name: "B" }).from.name, "B")
    assert.strictEqual(fieldsOf({ from: "A <a@b.de>", name: " " }).from.name, "A")
  })

  it("count once, in the first list that has them, whatever their case", () => {
    const read = fieldsOf({
      to: "A <x@d.de>, x@D.de, y@d.de",
      cc: "Y@d.de, z@d.de",
      bcc: "B <X@d.de>, z@d.de, w@d.de"
    })
    assert.deepStrictEqual(read.to, [mailbox("x@d.de", "A"), mailbox("y@d.de")])
    assert.deepStrictEqual(read.cc, [mailbox("z@d.de")])
    assert.deepStrictEqual(read.bcc, [mailbox("w@d.de")])
  })

  it("are 50 at most, in the three lists together, each counted once", () => {
    assert.strictEqual(fieldsOf({ to: addresses(50) }).to.length, 50)
    assert.strictEqual(faultOf({ to: addresses(51) }), "to: at most 50 recipients in to, cc and bcc")
    assert.strictEqual(fieldsOf({ to: `${addresses(50)},${addresses(50)}`, cc: addresses(50) }).to.length, 50)
    assert.isUndefined(faultOf({ to: addresses(20), cc: addresses(20, "b"), bcc: addresses(10, "c") }))
    assert.strictEqual(
      faultOf({ to: addresses(20), cc: addresses(20, "b"), bcc: addresses(11, "c") }),
      "bcc: at most 50 recipients in to, cc and bcc"
    )
    assert.strictEqual(faultOf({ to: ",".repeat(10_000) }), 'to[0]: "" is not an address')
  })
})

describe("subject, html and text", () => {
  it("are taken up to 998 characters, and to 2 MiB each in UTF-8", () => {
    assert.strictEqual(fieldsOf({ subject: "ü".repeat(998) }).subject.length, 998)
    for (const subject of ["", " ", "x".repeat(999), 1, ["x"]])
      assert.strictEqual(faultOf({ subject }), "subject: expected text of 1 to 998 characters")
    const most = 2 * 1024 * 1024
    for (const field of ["html", "text"]) {
      assert.isUndefined(faultOf({ [field]: "ü".repeat(most / 2) }))
      assert.strictEqual(faultOf({ [field]: `${"ü".repeat(most / 2)}x` }), `${field}: at most 2097152 bytes`)
      assert.strictEqual(faultOf({ [field]: "x".repeat(most + 1) }), `${field}: at most 2097152 bytes`)
    }
  })

  it("hold nothing that ends a line of a header, nor what is no text", () => {
    for (const sign of ["\r\n", "\r", "\n", "\0", "\t", "\u001b", "\u0085"])
      for (const subject of [`a${sign}Bcc: x@y.de`, `a${sign}`, `${sign}a`])
        assert.strictEqual(faultOf({ subject }), "subject: control characters are not taken")
    for (const field of ["html", "text"]) {
      assert.strictEqual(faultOf({ [field]: "a\0" }), `${field}: expected text without NUL characters`)
      assert.include(faultOf({ [field]: "a\ud800" }) ?? "", `${field}: expected well-formed Unicode`)
    }
    assert.include(faultOf({ subject: "\udc00" }) ?? "", "subject: expected well-formed Unicode")
  })

  it("are left as they are, but for the white space around a subject", () => {
    const html = " \r\n<p>\n\r\t.\r\n.\r\nFrom x\u2028</p> "
    assert.deepInclude(fieldsOf({ html, text: html, subject: " a  b " }), {
      html,
      text: html,
      subject: "a  b"
    })
  })
})

describe("attachments", () => {
  const file = (filename: unknown, content: unknown = "Zm9v") => ({ attachments: [{ filename, content }] })
  const nameOf = (filename: string) => fieldsOf(file(filename)).attachments[0]?.filename

  it("are 20 at most", () => {
    const many = (length: number) => ({
      attachments: Array.from({ length }, () => ({ filename: "a", content: "" }))
    })
    assert.strictEqual(fieldsOf(many(20)).attachments.length, 20)
    assert.strictEqual(faultOf(many(21)), "attachments: at most 20")
    for (const attachments of [{}, "a", 1])
      assert.strictEqual(faultOf({ attachments }), "attachments: expected a list of {filename, content}")
    assert.strictEqual(faultOf({ attachments: [null] }), "attachments[0]: expected {filename, content}")
  })

  it("have a name without its path, of 255 characters", () => {
    for (const path of [
      "a.txt",
      "/etc/a.txt",
      "../../a.txt",
      "C:\\Users\\a.txt",
      "..\\a.txt",
      "a/b\\a.txt",
      " a.txt "
    ])
      assert.strictEqual(nameOf(path), "a.txt")
    assert.strictEqual(nameOf(`${"d/".repeat(1_000)}${"ü".repeat(255)}`), "ü".repeat(255))
    for (const name of ["", " ", "/", "a/", "a\\", ".", "..", "../..", "x".repeat(256), 1, []])
      assert.strictEqual(
        faultOf(file(name)),
        "attachments[0].filename: expected a name of 1 to 255 characters"
      )
    for (const sign of ["\r\n", "\0", "\t", "\u0085", "\u2028", "\u202e", "\u2066"])
      assert.strictEqual(
        faultOf(file(`a${sign}.txt`)),
        "attachments[0].filename: control characters are not taken"
      )
    assert.include(faultOf(file("\ud800")) ?? "", "half of a surrogate pair")
  })

  it("have the type of their extension", () => {
    const typeOf = (name: string) => fieldsOf(file(name)).attachments[0]?.contentType
    assert.strictEqual(typeOf("a.png"), "image/png")
    assert.strictEqual(typeOf("a.tar.GZ"), "application/gzip")
    for (const name of ["a", ".png", "a.", "a.unknown", "a.constructor", "a.eml"])
      assert.strictEqual(typeOf(name), "application/octet-stream")
  })

  it("have their bytes, in strict Base64", () => {
    assert.deepStrictEqual(fieldsOf(file("a", "Zm\r\n9v")).attachments[0]?.content, Buffer.from("foo"))
    assert.deepStrictEqual(fieldsOf(file("a", "")).attachments[0]?.content, Buffer.alloc(0))
    assert.strictEqual(
      faultOf(file("a", "Zm9")),
      "attachments[0].content: expected base64 in groups of 4: 3 are left over"
    )
    assert.strictEqual(
      faultOf({ attachments: [file("a").attachments[0], { filename: "b", content: "*" }] })?.slice(0, 23),
      "attachments[1].content:"
    )
    assert.strictEqual(faultOf(file("a", null)), "attachments[0].content: is required")
    assert.strictEqual(faultOf(file(null)), "attachments[0].filename: is required")
    assert.strictEqual(faultOf(file("a", 1)), "attachments[0].content: expected text")
  })
})

describe("headers, send_at and unsubscribe", () => {
  it("are refused by name", () => {
    assert.strictEqual(faultOf({ headers: { Bcc: "x@y.de" } }), "headers.Bcc: not allowed")
    for (const headers of [[], "X-A: b", 1])
      assert.strictEqual(faultOf({ headers }), "headers: expected an object of texts")
    for (const unsubscribe of ["true", 1, {}])
      assert.strictEqual(faultOf({ unsubscribe }), "unsubscribe: expected true or false")
  })

  it("make a mail bulk: a URL, a campaign or the wish alone", () => {
    assert.isTrue(fieldsOf({ unsubscribe: true }).isBulk)
    assert.isTrue(fieldsOf({ headers: { "X-Campaign-ID": "c" } }).isBulk)
    assert.isTrue(fieldsOf({ headers: { "X-Unsubscribe-URL": "https://e.de/" }, unsubscribe: false }).isBulk)
    assert.isFalse(fieldsOf({ headers: { "X-Priority": "1" }, unsubscribe: false }).isBulk)
  })

  it("send at an instant with an offset, at most 30 days ahead; one that is past is due", () => {
    assert.strictEqual(fieldsOf({ send_at: "2026-12-23T12:00:00Z" }).sendAtMillis, now + 30 * 86_400_000)
    assert.strictEqual(faultOf({ send_at: "2026-12-23T12:00:00.001Z" }), "send_at: at most 30 days ahead")
    assert.strictEqual(fieldsOf({ send_at: "2026-11-23T11:59:59Z" }).sendAtMillis, now - 1_000)
    for (const send_at of [
      "",
      "tomorrow",
      "2026-12-01",
      "2026-12-01T00:00:00",
      "2026-02-30T00:00:00Z",
      1_800_000_000
    ])
      assert.match(faultOf({ send_at }) ?? "", /^send_at: expected an ISO-8601 instant with an offset/)
  })
})
