import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { readMailHeaders } from "#streams/mail/MailHeaders.ts"

const faultOf = (headers: object): string | undefined => {
  const read = readMailHeaders(headers)
  return Result.isFailure(read) ? `${read.failure.field}: ${read.failure.text}` : undefined
}
const read = (headers: object) => Result.getOrThrow(readMailHeaders(headers))

describe("custom headers", () => {
  it("are those of the list, in any case, and others with X-", () => {
    const headers = {
      "X-Priority": "1",
      "x-campaign-id": "spring",
      "In-Reply-To": "<a@b.de>",
      references: "<a@b.de> <c@d.de>",
      "AUTO-SUBMITTED": "auto-generated",
      "X-Entity-Ref-ID": "Ünicode",
      "X-a.b_c-9": "x"
    }
    assert.deepStrictEqual(read(headers), {
      headers: Object.entries(headers),
      unsubscribeUrl: null,
      campaign: "spring"
    })
    assert.deepStrictEqual(read({}), { headers: [], unsubscribeUrl: null, campaign: null })
  })

  it("are refused by name where the server or the mail decides them", () => {
    const names = [
      "Bcc",
      "bcc",
      "To",
      "Cc",
      "From",
      "Sender",
      "Reply-To",
      "Subject",
      "Date",
      "Message-ID",
      "Return-Path",

      "Received",
      "DKIM-Signature",
      "ARC-Seal",
      "Content-Type",
      "Content-Transfer-Encoding",
      "MIME-Version",

      "List-Unsubscribe-Post",
      "List-Id",
      "Resent-To",
      "Resent-Bcc",
      "Precedence",
      "Disposition-Notification-To",
      "",
      "X",
      "X-",
      "XY",
      "X-A:",
      "X-A b",
      "X-A\r\nBcc",
      "X-É",
      "X-A\u0000",
      " X-A",
      "X-A ",
      "__proto__"
    ]
    for (const name of names) {
      const fault = faultOf(Object.fromEntries([[name, "x"]]))
      assert.match(fault ?? "", /^headers\..*: not allowed$/u, name)
    }
    assert.strictEqual(faultOf({ Bcc: "a@b.de" }), "headers.Bcc: not allowed")
    assert.strictEqual(faultOf({ "X-A\r\nBcc": "a@b.de" }), "headers.X-A\ufffd\ufffdBcc: not allowed")
    assert.strictEqual(faultOf({ ["y".repeat(500)]: "x" }), `headers.${"y".repeat(100)}: not allowed`)
  })

  it("are no commands to relays", () => {
    const names = [
      "X-SMTPAPI",
      "x-smtpapi",
      "X-SES-CONFIGURATION-SET",
      "X-SES-SOURCE-ARN",
      "X-MC-Subaccount",
      "x-mc-tags",
      "X-PM-Message-Stream",
      "X-Mailgun-Variables",
      "X-MSYS-API",
      "X-Mailin-custom",
      "X-Mailjet-Campaign"
    ]
    for (const name of names) assert.strictEqual(faultOf({ [name]: "x" }), `headers.${name}: not allowed`)
    for (const name of ["X-SESSION", "X-MCC", "X-PMX", "X-Mailer"])
      assert.isUndefined(faultOf({ [name]: "x" }))
  })

  it("hold no CR, LF, NUL or other control", () => {
    for (const sign of ["\r\n", "\r", "\n", "\0", "\t", "\u001b", "\u007f", "\u0085"])
      for (const value of [`a${sign}Bcc: x@y.de`, `${sign}a`, `a${sign}`])
        assert.strictEqual(faultOf({ "X-A": value }), "headers.X-A: control characters are not taken")
    assert.strictEqual(
      faultOf({ "List-Unsubscribe": "https://e.de/\r\nBcc: a@b.de" }),
      "headers.List-Unsubscribe: control characters are not taken"
    )
    assert.include(faultOf({ "X-A": "\ud800" }) ?? "", "half of a surrogate pair")
  })

  it("are text, without the white space around it", () => {
    for (const value of [1, true, [], {}])
      assert.strictEqual(faultOf({ "X-A": value }), "headers.X-A: expected text")
    for (const value of ["", "  "])
      assert.strictEqual(faultOf({ "X-A": value }), "headers.X-A: expected text")
    assert.deepStrictEqual(read({ "X-A": "  a  b " }).headers, [["X-A", "a  b"]])
    assert.deepStrictEqual(read({ "X-A": null, Bcc: null }).headers, [])
  })

  it("are 20 at most, each of 998 characters with its name", () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, "x"]))
    assert.strictEqual(read(many(20)).headers.length, 20)
    assert.strictEqual(faultOf(many(21)), "headers: at most 20")
    assert.isUndefined(faultOf({ "X-A": "x".repeat(993) }))
    assert.strictEqual(
      faultOf({ "X-A": "x".repeat(994) }),
      "headers.X-A: at most 998 characters with its name"
    )
  })

  it("are there once, whatever their case", () => {
    assert.strictEqual(faultOf({ "X-A": "1", "x-a": "1" }), "headers.x-a: given twice")
  })
})

describe("X-Campaign-ID", () => {
  it("is 1 to 100 printable characters of ASCII", () => {
    const campaign = "Spring 2026 ~!".padEnd(100, "x")
    assert.strictEqual(read({ "X-Campaign-ID": campaign }).campaign, campaign)
    for (const value of [`${campaign}x`, "é", "a\u200b"])
      assert.strictEqual(
        faultOf({ "X-Campaign-ID": value }),
        "headers.X-Campaign-ID: expected 1 to 100 printable characters of ASCII"
      )
  })
})

describe("the unsubscribe URL", () => {
  const names = ["List-Unsubscribe", "X-Unsubscribe-URL", "list-unsubscribe", "x-unsubscribe-url"]

  it("comes under both names, with angle brackets or without, and is no header of its own", () => {
    for (const name of names)
      for (const url of ["https://e.de/u?a=1,2&b=%20", "http://e.de"])
        for (const value of [url, `<${url}>`, ` <${url}> `])
          assert.deepStrictEqual(read({ [name]: value }), {
            headers: [],
            unsubscribeUrl: url,
            campaign: null
          })
  })

  it("is one http or https URL in ASCII", () => {
    const refused = [
      "mailto:a@b.de",
      "<mailto:a@b.de>",
      "javascript:alert(1)",
      "e.de",
      "//e.de",
      "https://",
      "ftp://e.de",

      "<https://a.de>, <https://b.de>",
      "https://a.de https://b.de",
      "<https://a.de",
      "https://a.de>",
      "<<https://a.de>>",
      "https://a.de/é",
      'https://a.de/"',
      "https://u:p@a.de",
      "https://u@a.de"
    ]
    for (const url of refused)
      assert.strictEqual(
        faultOf({ "List-Unsubscribe": url }),
        "headers.List-Unsubscribe: expected one http or https URL in ASCII, without a password",
        url
      )
  })

  it("fits a line of 998 characters", () => {
    const url = (length: number) => "https://e.de/".padEnd(length, "x")
    for (const name of names) {
      assert.strictEqual(read({ [name]: `<${url(978)}>` }).unsubscribeUrl, url(978))
      assert.strictEqual(faultOf({ [name]: url(979) }), `headers.${name}: at most 978 characters`)
    }
  })

  it("is the same under both names", () => {
    const both = (first: string, second: string) => ({
      "List-Unsubscribe": first,
      "X-Unsubscribe-URL": second
    })
    assert.strictEqual(read(both("<https://e.de/>", "https://e.de/")).unsubscribeUrl, "https://e.de/")
    assert.strictEqual(
      faultOf(both("https://e.de/", "https://e.de/2")),
      "headers.X-Unsubscribe-URL: another URL than the one before"
    )
  })
})

describe("In-Reply-To, References, Auto-Submitted", () => {
  it("have the form of their RFCs", () => {
    for (const name of ["In-Reply-To", "References"]) {
      for (const value of ["<a@b.de>", "<a@b.de><c@d.de>", "<a@b.de>  <c@[1.2.3.4]>", "<no-at>"])
        assert.isUndefined(faultOf({ [name]: value }))
      for (const value of [
        "a@b.de",
        "<>",
        "<a@b.de",
        "a@b.de>",
        "<a b@c.de>",
        "<a@b.de>, <c@d.de>",
        "<é@b.de>",
        "<a@b.de> x"
      ])
        assert.strictEqual(
          faultOf({ [name]: value }),
          `headers.${name}: expected message ids in angle brackets`
        )
    }
    for (const value of ["no", "auto-generated", "auto-replied; owner-email=a@b.de"])
      assert.isUndefined(faultOf({ "Auto-Submitted": value }))
    for (const value of ["1", "auto generated", "é", "a;é"])
      assert.strictEqual(
        faultOf({ "Auto-Submitted": value }),
        "headers.Auto-Submitted: expected no, auto-generated or auto-replied"
      )
  })

  it("are refused in time that grows with their length alone", () => {
    assert.isUndefined(faultOf({ References: "<a>".repeat(328) }))
    for (const text of ["<a>", "<a> ", "<", ">", " "])
      assert.isDefined(faultOf({ References: `<a>${text.repeat(984 / text.length)}x` }))
  })
})

describe("whatever is accepted", () => {
  it("is a line of a header, and none of those that are refused", () => {
    const name = fc.oneof(
      fc.string({ unit: "binary", maxLength: 10 }),
      fc.constantFrom("X-A", "x-b", "Bcc", "X-SES-a", "References", "X-Campaign-ID", "List-Unsubscribe")
    )
    const value = fc.oneof(
      fc.anything(),
      fc.string({ unit: "binary" }),
      fc.constantFrom("<a@b.de>", "https://e.de/")
    )
    fc.assert(
      fc.property(fc.dictionary(name, value, { maxKeys: 3 }), (headers) => {
        const result = readMailHeaders(headers)
        if (Result.isFailure(result)) return
        for (const [key, text] of result.success.headers) {
          assert.match(key, /^(x-(?!ses-)[\w.-]+|references)$/i)
          assert.notMatch(text, /\p{Cc}/u)
        }
      }),
      { numRuns: 1_000 }
    )
  })
})
