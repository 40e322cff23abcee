import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { namesFrom, recordsOf, shownDomain } from "#src/mail/domains/DomainRecords.ts"
import { DomainSettings, mailDomainOf } from "#src/mail/domains/DomainSettings.ts"
import { EnvironmentReader } from "#src/EnvironmentReader.ts"

const publicKey = "A".repeat(392)
const settings = {
  spf: ["include:_spf.relay.test", "ip4:192.0.2.1"],
  bounceDomain: "bounces.test",
  hostname: "mx.signalbox.test",
  fromDomains: new Set<string>(),
  nameServers: []
}
const row = {
  id: "dom_1",
  user_id: "usr_1",
  name: "example.test",
  selector: "sb1",
  public_key: publicKey,
  private_key: new Uint8Array(),
  next_public_key: null,
  next_private_key: null,
  retired_at: null,
  verified_at: null,
  unverified_at: new Date(0),
  looked_up_at: null,
  findings: {},
  created_at: new Date(0)
} as const

const judged = (kind: string, ...found: ReadonlyArray<string>) => {
  const record = recordsOf(row, settings).find((one) => one.kind === kind)
  if (record === undefined) throw new Error(`no record ${kind}`)
  const { problem, status } = record.judge(found)
  return problem === null ? status : `${status}: ${problem}`
}

describe("records of a mail domain", () => {
  it("are those of its key, SPF, DMARC and the domain of bounces, as texts and as lines of a zone", () => {
    assert.deepStrictEqual(
      shownDomain(row, settings).records.map(({ kind, type, name, value }) => [kind, type, name, value]),
      [
        ["dkim", "TXT", "sb1._domainkey.example.test", `v=DKIM1; k=rsa; p=${publicKey}`],
        ["spf", "TXT", "example.test", "v=spf1 include:_spf.relay.test ip4:192.0.2.1 ~all"],
        ["dmarc", "TXT", "_dmarc.example.test", "v=DMARC1; p=none"],
        ["bounce", "MX", "bounces.test", "10 mx.signalbox.test"]
      ]
    )
    const [dkim, , , bounce] = shownDomain(row, settings).records.map(({ zone }) => zone)
    const [, first = "", second = ""] =
      /^sb1\._domainkey\.example\.test\. 3600 IN TXT "([^"]+)" "([^"]+)"$/.exec(dkim ?? "") ?? []
    assert.strictEqual(first.length, 255)
    assert.strictEqual(first + second, `v=DKIM1; k=rsa; p=${publicKey}`)
    assert.strictEqual(bounce, "bounces.test. 3600 IN MX 10 mx.signalbox.test.")
  })

  it("leave out what the operator has not said", () => {
    const kinds = (changes: object) => recordsOf(row, { ...settings, ...changes }).map(({ kind }) => kind)
    assert.deepStrictEqual(kinds({ spf: [] }), ["dkim", "dmarc", "bounce"])
    assert.deepStrictEqual(kinds({ hostname: undefined }), ["dkim", "spf", "dmarc"])
    assert.deepStrictEqual(kinds({ bounceDomain: undefined }), ["dkim", "spf", "dmarc"])
  })

  it("of DKIM: the key counts, however the record is written", () => {
    const p = `p=${publicKey}`
    for (const text of [
      `v=DKIM1; k=rsa; ${p}`,
      `v=DKIM1;${p};`,
      p,
      `k=rsa; p=${publicKey.slice(0, 100)} \t${publicKey.slice(100)} ; t=y:s`,
      `v=DKIM1; h=sha1:sha256; s=*; n=a note; ${p}`,
      `v=DKIM1; s=tlsrpt : email; ${p}`
    ])
      assert.strictEqual(judged("dkim", text), "ok", text)
    assert.strictEqual(judged("dkim"), "missing")
    for (const [text, problem] of [
      [`v=DKIM1; k=rsa; p=B${publicKey.slice(1)}`, "p: it is another key"],
      ["v=DKIM1; p=", "p: it is another key"],
      ["v=DKIM1; k=rsa", "p: it is another key"],
      [`v=DKIM2; ${p}`, "v: expected DKIM1, first of all"],
      [`${p}; v=DKIM1`, "v: expected DKIM1, first of all"],
      [`v=DKIM1; k=ed25519; ${p}`, "k: expected rsa"],
      [`v=DKIM1; h=sha1; ${p}`, "h: does not allow sha256"],
      [`v=DKIM1; s=tlsrpt; ${p}`, "s: does not allow email"],
      [`v=DKIM1; ${p}; ${p}`, "it is no list of tags"],
      ["hello", "it is no list of tags"],
      ["", "it is no list of tags"]
    ] as const)
      assert.strictEqual(judged("dkim", text), `different: ${problem}`, text)
    assert.strictEqual(
      judged("dkim", p, p),
      "different: there are several records: verifiers may take any of them"
    )
  })

  it("of SPF: the operator's mechanisms are among those before `all`, in the only record", () => {
    for (const text of [
      "v=spf1 include:_spf.relay.test ip4:192.0.2.1 ~all",
      "V=SPF1 mx +IP4:192.0.2.1  include:_SPF.relay.test -all",
      "v=spf1 ip4:192.0.2.1 include:_spf.relay.test"
    ])
      assert.strictEqual(judged("spf", "other=text", text), "ok", text)
    for (const text of ["v=spf10 a", "spf2.0/pra ?all", ""])
      assert.strictEqual(judged("spf", text), "missing", text)
    assert.strictEqual(
      judged("spf", "v=spf1 include:_spf.relay.test -all"),
      "different: it lacks ip4:192.0.2.1"
    )
    assert.strictEqual(
      judged("spf", "v=spf1 include:_spf.relay.test -all ip4:192.0.2.1"),
      "different: it lacks ip4:192.0.2.1"
    )
    assert.strictEqual(
      judged("spf", "v=spf1 -include:_spf.relay.test ip4:192.0.2.1"),
      "different: it lacks include:_spf.relay.test"
    )
    assert.strictEqual(
      judged("spf", "v=spf1 ~all", "v=spf1 ~all"),
      "different: there are several records: none of them counts"
    )
  })

  it("of SPF: a record that is there is shown with what it lacks, and would then be ok", () => {
    const shown = (found: ReadonlyArray<string>) => {
      const spf = recordsOf(row, settings).find(({ kind }) => kind === "spf")
      if (spf === undefined) throw new Error("no SPF")
      const looked = { ...row, findings: { "spf example.test": spf.judge(found) } }
      return shownDomain(looked, settings).records.find(({ kind }) => kind === "spf")?.value ?? ""
    }
    assert.strictEqual(
      shown(["v=spf1 mx ip4:192.0.2.1 -all"]),
      "v=spf1 include:_spf.relay.test mx ip4:192.0.2.1 -all"
    )
    assert.strictEqual(shown(["v=spf1"]), "v=spf1 include:_spf.relay.test ip4:192.0.2.1")
    for (const text of ["v=spf1", "v=spf1 mx -all", "v=spf1 redirect=_spf.other.test"])
      assert.strictEqual(judged("spf", shown([text])), "ok", text)
    const usual = "v=spf1 include:_spf.relay.test ip4:192.0.2.1 ~all"
    assert.strictEqual(shown(["v=spf1 a", "v=spf1 mx"]), usual)
    assert.strictEqual(shown([`v=spf1 ${"ip4:192.0.2.200 ".repeat(40)}-all`]), usual)
  })

  it("of DMARC: every policy will do", () => {
    for (const text of [
      "v=DMARC1; p=none",
      "v=DMARC1;p=quarantine; rua=mailto:a@b.test",
      "v = DMARC1 ; p=REJECT;"
    ])
      assert.strictEqual(judged("dmarc", text), "ok", text)
    for (const text of ["v=DMARC12; p=none", "p=none; v=DMARC1", "v=dmarc1; p=none"])
      assert.strictEqual(judged("dmarc", text), "missing", text)
    for (const text of ["v=DMARC1", "v=DMARC1; p=all", "v=DMARC1; p=none; p=none"])
      assert.strictEqual(judged("dmarc", text), "different: p: expected none, quarantine or reject", text)
    assert.match(judged("dmarc", "v=DMARC1; p=none", "v=DMARC1; p=none"), /^different: there are several/)
  })

  it("of bounces: the server is among the exchanges", () => {
    assert.strictEqual(judged("bounce", "5 other.test", "20 mx.signalbox.test"), "ok")
    assert.strictEqual(judged("bounce"), "missing")
    assert.strictEqual(judged("bounce", "5 x.test"), "different: none of them is mx.signalbox.test")
  })

  it("show at most 5 of those that were found, in 500 characters of ASCII", () => {
    const [record] = recordsOf(row, settings)
    const { found } = record?.judge([
      "\u0000\ud800é\n",
      ...Array.from({ length: 9 }, () => "x".repeat(501))
    ]) ?? {
      found: []
    }
    assert.deepStrictEqual(found, ["????", ...Array.from({ length: 4 }, () => "x".repeat(500))])
  })

  it("are judged in time that is linear in what strangers publish", () => {
    // Ten times what DNS can carry: in quadratic time this would outlast the test.
    const length = 600_000
    for (const text of [
      "v=DKIM1;".repeat(length / 8),
      "; ".repeat(length / 2),
      `a=x${" ".repeat(length)}y`,
      `v=spf1 ${"+".repeat(length)}`,
      `v=spf1 ${"a ".repeat(length / 2)}`,
      " ".repeat(length)
    ])
      for (const kind of ["dkim", "spf", "dmarc"]) assert.notStrictEqual(judged(kind, text), "ok")
  })
})

describe("names of mail domains", () => {
  it("are lower-case ASCII of two labels or more", () => {
    for (const [text, name] of [
      ["Example.COM", "example.com"],
      ["example.com.", "example.com"],
      ["münchen.example", "xn--mnchen-3ya.example"],
      ["a.b.c.example", "a.b.c.example"],
      [`${"a".repeat(63)}.example`, `${"a".repeat(63)}.example`],
      ["xn--fiqs8s.xn--fiqs8s", "xn--fiqs8s.xn--fiqs8s"]
    ] as const)
      assert.strictEqual(mailDomainOf(text), name, text)
    for (const text of [
      "",
      "localhost",
      "192.0.2.1",
      "2130706433",
      "[::1]",
      "a_b.example",
      "-a.example",
      "a-.example",
      "a..example",
      ".example",
      "a@b.example",
      "a b.example",
      "http://a.example",
      "a.example/x",
      "a.example:25",
      "*.example.com",
      `${"a".repeat(64)}.example`,
      "a.\u0000example",
      "a.example-",
      "exam\u00adple.com",
      "a.example.."
    ])
      assert.strictEqual(mailDomainOf(text), undefined, text)
    const long = (length: number) =>
      `${"a.".repeat(length)}`.slice(0, length - 4).replace(/\.$/, "b") + ".com"
    assert.strictEqual(mailDomainOf(long(238))?.length, 238)
    assert.strictEqual(mailDomainOf(long(239)), undefined)
  })

  it("are names of DNS whatever is written, and name themselves", () => {
    const texts = fc.oneof(fc.string({ unit: "binary" }), fc.domain(), fc.webAuthority())
    fc.assert(
      fc.property(texts, (text) => {
        const name = mailDomainOf(text)
        if (name === undefined) return
        assert.match(name, /^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+$/)
        assert.strictEqual(mailDomainOf(name), name)
      }),
      { numRuns: 2_000 }
    )
  })

  it("have names above them, down to two labels", () => {
    assert.deepStrictEqual(namesFrom("a.b.example.com"), ["a.b.example.com", "b.example.com", "example.com"])
    assert.deepStrictEqual(namesFrom("example.com"), ["example.com"])
  })
})

describe("settings of mail domains", () => {
  const read = (environment: Readonly<Record<string, string>>) => {
    const reader = new EnvironmentReader(environment)
    return { ...DomainSettings.from(reader), faults: reader.faults.map(({ variable }) => variable) }
  }

  it("are read from the environment, and unset by default", () => {
    const unset = {
      spf: [],
      bounceDomain: undefined,
      hostname: undefined,
      fromDomains: new Set<string>(),
      nameServers: []
    }
    assert.deepStrictEqual(read({}), { ...unset, faults: [] })
    assert.deepStrictEqual(
      read({
        MAIL_SPF: "v=spf1 include:_SPF.relay.test +mx a:out.test/28 -all",
        MAIL_BOUNCE_DOMAIN: "Bounces.test",
        MAIL_HOSTNAME: "mx.test",
        MAIL_FROM_DOMAINS: "example.com, *",
        MAIL_DNS: "192.0.2.53,[2001:db8::53]:5353"
      }),
      {
        spf: ["include:_spf.relay.test", "mx", "a:out.test/28"],
        bounceDomain: "bounces.test",
        hostname: "mx.test",
        fromDomains: new Set(["example.com", "*"]),
        nameServers: ["192.0.2.53:53", "[2001:db8::53]:5353"],
        faults: []
      }
    )
  })

  it("name the variable that is wrong", () => {
    for (const [variable, text] of [
      ["MAIL_SPF", "all"],
      ["MAIL_SPF", "-ip4:192.0.2.1"],
      ["MAIL_SPF", "redirect=_spf.relay.test"],
      ["MAIL_SPF", 'include:"x'],
      ["MAIL_SPF", Array.from({ length: 11 }, (_, n) => `ip4:192.0.2.${n}`).join(" ")],
      ["MAIL_BOUNCE_DOMAIN", "bounces"],
      ["MAIL_HOSTNAME", "127.0.0.1"],
      ["MAIL_FROM_DOMAINS", "example.com,nothing"],
      ["MAIL_DNS", "ns.example"]
    ] as const)
      assert.deepStrictEqual(read({ [variable]: text }).faults, [variable], text)
  })
})
