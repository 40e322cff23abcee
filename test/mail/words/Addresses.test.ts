import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import addressparser from "nodemailer/lib/addressparser"
import { domainToASCII } from "node:url"
import { addressListMax, addressOf, readAddress, readAddresses, readName } from "#streams/mail/Addresses.ts"
import { domainNameOf } from "#streams/mail/DomainName.ts"
import type { Mailbox } from "#streams/mail/MailFields.ts"

const faultOf = (text: string): string | undefined => {
  const read = readAddresses("to", text)
  return Result.isFailure(read) ? `${read.failure.field}: ${read.failure.text}` : undefined
}

/** Pairs of name and address. */
const listOf = (text: string): ReadonlyArray<readonly [string | null, string]> =>
  Result.getOrThrow(readAddresses("to", text)).map(({ name, address }) => [name, address] as const)

const written = ({ address, name }: Mailbox): string =>
  name === null ? address : `"${name.replace(/["\\]/g, "\\$&")}" <${address}>`

describe("the examples of RFC 5322, appendix A", () => {
  it("are read: addresses, angle brackets, names in atoms and in quotation marks", () => {
    assert.deepStrictEqual(listOf("John Doe <jdoe@machine.example>"), [["John Doe", "jdoe@machine.example"]])
    assert.deepStrictEqual(listOf('"Joe Q. Public" <john.q.public@example.com>'), [
      ["Joe Q. Public", "john.q.public@example.com"]
    ])
    assert.deepStrictEqual(listOf("Mary Smith <mary@x.test>, jdoe@example.org, Who? <one@y.test>"), [
      ["Mary Smith", "mary@x.test"],
      [null, "jdoe@example.org"],
      ["Who?", "one@y.test"]
    ])
    assert.deepStrictEqual(
      listOf(String.raw`<boss@nil.test>, "Giant; \"Big\" Box" <sysservices@example.net>`),
      [
        [null, "boss@nil.test"],
        ['Giant; "Big" Box', "sysservices@example.net"]
      ]
    )
    // Appendix A.6.1: dots in a name without quotation marks are obsolete, and everywhere.
    assert.deepStrictEqual(listOf("Joe Q. Public <john.q.public@example.com>"), [
      ["Joe Q. Public", "john.q.public@example.com"]
    ])
  })

  it("are refused: groups, comments, routes, spaces within, literals, quoted local parts", () => {
    const refused: ReadonlyArray<string> = [
      "A Group:Ed Jones <joe@where.test>",
      "Undisclosed recipients:;",
      "Pete(A nice \\) chap) <pete(his account)@silly.test(his host)>",
      "Mary Smith <@node.test:mary@example.net>",
      "jdoe@test   . example",
      "jdoe@[127.0.0.1]",
      "jdoe@[IPv6:::1]",
      "<jdoe@[127.0.0.1]>",
      '"john doe"@example.com',
      '"a"@example.com',
      "Pete <pete@silly.test> (comment)"
    ]
    for (const text of refused) {
      const fault = faultOf(text) ?? ""
      assert.match(fault, /^to\[0\]: "(?:[^"\\]|\\.)*" is not an address/, text)
    }
  })
})

describe("an address", () => {
  const label63 = "a".repeat(63)
  const domain189 = `${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`

  it("is taken up to 64 characters before the @, 63 in a label, 254 in all", () => {
    const local64 = "x".repeat(64)
    for (const text of [`${local64}@e.example`, `a@${label63}.example`, `${local64}@${domain189}`])
      assert.deepStrictEqual(listOf(text), [[null, text]])
    assert.strictEqual(`${local64}@${domain189}`.length, 254)
    assert.include(faultOf(`${local64}x@e.example`) ?? "", "its local part is longer than 64 characters")
    assert.include(faultOf(`a@${label63}a.example`) ?? "", " is not an address")
    assert.include(faultOf(`${local64}@${domain189}d`) ?? "", "it is longer than 254 characters")
  })

  it("is dot-atom at a name of two labels or more", () => {
    for (const text of ["a+b@c.de", "!#$%&'*+-/=?^_`{|}~@c.de", "a.b.c@d--e.example", "1@1.de", "a@b.c2"])
      assert.deepStrictEqual(listOf(text), [[null, text]])
    const refused = [
      "",
      "a",
      "@",
      "a@",
      "@b.de",
      "a@b",
      "a@localhost",
      "a@.de",
      "a@b..de",
      "a@b.de.",
      "a..b@c.de",
      ".a@b.de",
      "a.@b.de",
      "a b@c.de",
      "a@b c.de",
      "a@-b.de",
      "a@b-.de",
      "a@b_c.de",
      "a@b.de/x",
      "a@127.0.0.1",
      "a@1.2",
      "a@b.0x7f",
      "a@b.123",
      "a@xn--a.de",
      "a@xn--.de",
      "a@b%41.de",
      "a@b!c.de",
      "<>",
      "<a@b.de",
      "a@b.de>",
      "<<a@b.de>>",
      "< a@b.de>",
      "<a@b.de> x",
      "mailto:a@b.de",
      "x@y.de z@w.de",
      '"a@b.de',
      'a"@b.de',
      "a\\@b.de",
      "a@b@c.de",
      "a@b.de@",
      "a@b.de;c@d.de"
    ]
    for (const text of refused) assert.match(faultOf(text) ?? "", / is not an address/, text)
  })

  it("has its domain in lower case and punycode, its local part as it was written", () => {
    assert.deepStrictEqual(listOf("Jo.Doe@EXAMPLE.Com"), [[null, "Jo.Doe@example.com"]])
    const bucher = [null, "a@xn--bcher-kva.example"] as const
    const list = "a@Bücher.example, a@bu\u0308cher.example, a@xn--BCHER-kva.example"
    assert.deepStrictEqual(listOf(list), [bucher, bucher, bucher])
    assert.strictEqual(domainNameOf("почта.рф"), domainToASCII("почта.рф"))
    assert.deepStrictEqual(addressOf("a@MAIL.example"), { address: "a@mail.example", domain: "mail.example" })
    assert.isUndefined(addressOf("<a@mail.example>"))
    // A letter of another script is another name, and shows as one.
    assert.strictEqual(domainNameOf("\u0430pple.com"), "xn--pple-43d.com")
    assert.notStrictEqual(domainNameOf("\u0430pple.com"), "apple.com")
  })

  it("has a domain of letters and digits alone: no sign turns into a dot or vanishes", () => {
    for (const sign of [
      "\u3002",
      "\uff0e",
      "\uff61",
      "\u00ad",
      "\u200b",
      "\u200d",
      "\u2060",
      "\u2100",
      "\u2488",
      "\ufeff"
    ])
      assert.isUndefined(domainNameOf(`exam${sign}ple.com`), JSON.stringify(sign))
    for (const sign of ["\uff20", "\ufe6b"])
      assert.include(faultOf(`a${sign}b.de`) ?? "", "is not an address")
  })

  it("is refused with the reason, and shown without what is not seen", () => {
    assert.strictEqual(faultOf("b@c.de, a@"), 'to[1]: "a@" is not an address')
    assert.strictEqual(faultOf("a@b@c.de"), 'to[0]: "a@b@c.de" is not an address: it has two @')
    assert.strictEqual(faultOf("é@c.de"), 'to[0]: "é@c.de" is not an address: its local part is not ASCII')
    assert.strictEqual(
      faultOf("a@b.de\r\nBcc: x@y.de"),
      String.raw`to[0]: "a@b.de\r\nBcc: x@y.de" is not an address: control characters are not taken`
    )
    assert.strictEqual(
      faultOf("\u202ea\u009b@c.de"),
      String.raw`to[0]: "\u{202e}a\u{9b}@c.de" is not an address: control characters are not taken`
    )
    assert.strictEqual(
      faultOf(`${"ab ".repeat(300)}@`),
      `to[0]: "${"ab ".repeat(34).slice(0, 100)}…" is not an address: its local part is longer than 64 characters`
    )
  })
})

describe("a name", () => {
  const nameOf = (text: string) => listOf(`${text} <a@b.de>`)[0]?.[0]

  it("is text of atoms, of quotation marks or of both, with single spaces", () => {
    assert.strictEqual(nameOf("Jürgen  Groß 🎉"), "Jürgen Groß 🎉")
    assert.strictEqual(nameOf('"Last, First"'), "Last, First")
    assert.strictEqual(nameOf('"Joe  Q." Public "(the \\\\ 1st)"'), "Joe Q. Public (the \\ 1st)")
    assert.strictEqual(nameOf('"<x@y.de>, z@w.de"'), "<x@y.de>, z@w.de")
    assert.isNull(nameOf('""'))
    assert.isNull(nameOf('"  "'))
    assert.deepStrictEqual(listOf("Name<a@b.de>"), [["Name", "a@b.de"]])
  })

  it("is refused where it is two things at once", () => {
    for (const name of [
      "a:",
      "(a)",
      "a;",
      "a@b",
      "<x@y.de>",
      "[a]",
      'a"b"',
      '"a""b"',
      '"a"b',
      "a\\b",
      '"a',
      'a"',
      "a >"
    ])
      assert.match(faultOf(`${name} <a@b.de>`) ?? "", / is not an address: /, name)
    // Without quotation marks a comma separates.
    assert.strictEqual(faultOf("Last, First <a@b.de>"), 'to[0]: "Last" is not an address')
  })

  it("is taken up to 200 characters", () => {
    assert.strictEqual(nameOf("n".repeat(200)), "n".repeat(200))
    assert.include(faultOf(`${"n".repeat(201)} <a@b.de>`) ?? "", "its name: at most 200 characters")
    assert.deepStrictEqual(readName("name", "n".repeat(200)), Result.succeed("n".repeat(200)))
    assert.deepStrictEqual(
      readName("name", "n".repeat(201)),
      Result.fail({ field: "name", text: "at most 200 characters" })
    )
    assert.deepStrictEqual(readName("name", "  "), Result.succeed(null))
  })

  it("holds no controls: of lines, of terminals, of direction", () => {
    const controls = ["\r\n", "\r", "\n", "\0", "\t", "\u001b", "\u007f", "\u0085", "\u2028", "\u2029"]
    const directions = ["\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"]
    for (const sign of [...controls, ...directions])
      for (const text of [
        `a${sign}b <a@b.de>`,
        `"a${sign}b" <a@b.de>`,
        `"a\\${sign}b" <a@b.de>`,
        `${sign} <a@b.de>`
      ]) {
        assert.match(faultOf(text) ?? "", /is not an address: .*control/, JSON.stringify(text))
        assert.isTrue(Result.isFailure(readName("name", `a${sign}b`)), JSON.stringify(sign))
      }
    assert.include(faultOf('"\ud800" <a@b.de>') ?? "", "half of a surrogate pair")
  })
})

describe("a list", () => {
  it("has a place for every part, also for an empty one", () => {
    for (const [text, index] of [
      ["", 0],
      [" ", 0],
      [",", 0],
      ["a@b.de,", 1],
      ["a@b.de,,c@d.de", 1],
      [",a@b.de", 0]
    ] as const)
      assert.strictEqual(faultOf(text), `to[${index}]: "" is not an address`)
    assert.strictEqual(faultOf("a@b.de\n, c@d.de")?.slice(0, 5), "to[0]")
    assert.strictEqual(faultOf("a@b.de\n")?.slice(0, 5), "to[0]")
  })

  it("is one where one is asked for", () => {
    const one = (text: string) =>
      Result.mapError(readAddress("from", text), ({ field, text }) => `${field}: ${text}`)
    assert.deepStrictEqual(Result.getOrThrow(one('"A, B" <a@b.de>')).name, "A, B")
    assert.deepStrictEqual(one("a@b.de, c@d.de"), Result.fail("from: expected one address"))
    assert.deepStrictEqual(one("a@"), Result.fail('from: "a@" is not an address'))
  })

  it("is taken up to 65,536 characters", () => {
    const text = `${"a@b.de,".repeat(20_000)}`
    assert.strictEqual(faultOf(text), "to: at most 65536 characters")
    const longest = `"${" ".repeat(addressListMax - 9)}"<a@b.de>`.slice(0, addressListMax)
    assert.strictEqual(faultOf(`${longest}x`), "to: at most 65536 characters")
    assert.deepStrictEqual(
      Result.map(readAddress("from", `${longest}x`), () => 1),
      Result.fail({ field: "from", text: "at most 65536 characters" })
    )
    assert.deepStrictEqual(listOf(`${" ".repeat(addressListMax - 6)}a@b.de`), [[null, "a@b.de"]])
  })

  it("takes time in proportion to its length, whatever is in it", () => {
    const millisOf = (parts: string, around: string, length: number): number => {
      const text = around.replace("%", () => parts.repeat(length).slice(0, length - around.length))
      const tries = Array.from({ length: 3 }, () => {
        const started = process.cpuUsage()
        void faultOf(text)
        const { user, system } = process.cpuUsage(started)
        return (user + system) / 1_000
      })
      return Math.min(...tries)
    }
    const hostile = [
      ",",
      " ",
      '"',
      "\\",
      '"\\',
      '\\"',
      "<",
      ">",
      "@",
      "(",
      ".",
      "a.",
      "a ",
      '" ',
      '"a" ',
      "a@b.de,",
      "=?",
      "é",
      "\u0301",
      "a@",
      ",,,,<",
      '""',
      '"\\" "'
    ]
    for (const parts of hostile)
      for (const around of ["%", "x%", "%<a@b.de>", "x%<a@b.de>", '"%" <a@b.de>', "a@b.de,%x"]) {
        const [short, long] = [millisOf(parts, around, 8_192), millisOf(parts, around, addressListMax)]
        // Eight times the length: eight times the time, or 64 where it is quadratic, then above a second.
        assert.isBelow(long, 24 * short + 20, JSON.stringify([parts, around]))
      }
  })
})

describe("whatever is accepted", () => {
  const text = fc.array(
    fc.oneof(
      fc.constantFrom(...'ab.@<>",\\ ()[]:;=?é\u202e\r\n\0'.split("")),
      fc.constantFrom(
        "a@b.de",
        "<a@b.de>",
        '"A, B" <c@d.de>',
        "Jo Ü <x.y@bücher.example>",
        ", ",
        "xn--",
        "=?utf-8?q?x?="
      )
    ),
    { maxLength: 12 }
  )
  const lists = text.map((parts) => parts.join(""))
  const name = fc.string({ unit: "grapheme", maxLength: 30 })
  const local = fc.stringMatching(/^[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]{1,20}(\.[a-zA-Z0-9]{1,10}){0,2}$/)
  const domain = fc
    .stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?\.[a-z]{2,8}$/)
    .filter((text) => domainNameOf(text) === text)
  const mailboxes = fc.record({ name, local, domain })

  it("is read as itself when it is written again", () => {
    let accepted = 0
    fc.assert(
      fc.property(lists, (list) => {
        const read = readAddresses("to", list)
        if (Result.isFailure(read)) return
        accepted++
        const again = Result.getOrThrow(readAddresses("to", read.success.map(written).join(", ")))
        assert.deepStrictEqual(again, read.success)
      }),
      { numRuns: 2_000 }
    )
    assert.isAbove(accepted, 50)
  })

  it("is what was meant, every name in quotation marks and every address", () => {
    fc.assert(
      fc.property(fc.array(mailboxes, { minLength: 1, maxLength: 5 }), (given) => {
        const meant = given.map((each): Mailbox => {
          const read = readName("name", each.name)
          return {
            address: `${each.local}@${each.domain}`,
            domain: each.domain,
            name: Result.getOrElse(read, () => null)
          }
        })
        assert.deepStrictEqual(Result.getOrThrow(readAddresses("to", meant.map(written).join(","))), meant)
      }),
      { numRuns: 500 }
    )
  })

  it("is the same to nodemailer's parser", () => {
    const same = (list: string) => {
      const read = readAddresses("to", list)
      if (Result.isFailure(read)) return
      const theirs = addressparser(list, { flatten: true })
      assert.deepStrictEqual(
        theirs.map(({ address }) => addressOf(address)?.address),
        read.success.map(({ address }) => address),
        JSON.stringify(list)
      )
      const names = theirs.map(({ name }) => name.replace(/ +/g, " ").trim())
      assert.deepStrictEqual(
        names,
        read.success.map(({ name }) => name ?? ""),
        JSON.stringify(list)
      )
    }
    fc.assert(fc.property(lists, same), { numRuns: 2_000 })
    for (const list of [
      '"Last, First" <a@b.de>',
      "a@b.de, Name <c@d.de>",
      String.raw`"Giant; \"Big\" Box" <s@e.net>`
    ])
      same(list)
  })

  it("has one @, and nothing that ends a line or a header", () => {
    fc.assert(
      fc.property(lists, (list) => {
        const read = readAddresses("to", list)
        if (Result.isFailure(read)) return
        for (const { address, domain, name } of read.success) {
          assert.match(address, /^[!-?A-~]+@[a-z0-9.-]+$/)
          assert.notMatch(address, /[\s<>(),;:"\\[\]]/)
          assert.isTrue(address.endsWith(`@${domain}`))
          assert.notMatch(name ?? "", /[\p{Cc}\p{Bidi_Control}]/u)
        }
      }),
      { numRuns: 2_000 }
    )
  })
})
