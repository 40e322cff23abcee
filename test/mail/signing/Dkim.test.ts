import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { dkimVerify } from "mailauth/lib/dkim/verify.js"
import { composeMail } from "#src/mail/composing/Compose.ts"
import { bodyHashOf, type DkimKey, type Header, newDkimKey, signedHead } from "#src/mail/signing/Dkim.ts"
import { mailOf, mails } from "../composing/Mails.ts"

const seed = Number(process.env["MAIL_SEED"] ?? Date.now() % 2_147_483_647)
const numRuns = Number(process.env["MAIL_SIGNED"] ?? 100)

const pair = await newDkimKey()
const key = (domain: string, selector = "sb1"): DkimKey => ({ domain, selector, privateKey: pair.privateKey })

const verdicts = async (message: Buffer) => {
  const { results } = await dkimVerify(message, {
    resolver: (name: string, type: string) => {
      if (type !== "TXT" || !name.includes("._domainkey.")) throw new Error(`nothing is known of ${name}`)
      return Promise.resolve([[`v=DKIM1; k=rsa; p=${pair.publicKey}`]])
    }
  })
  return results.map(({ signingDomain, signingHeaders, status }) => ({
    domain: signingDomain,
    result: status.result,
    headers: (signingHeaders?.keys ?? "").toLowerCase().split(/[:\s]+/)
  }))
}

const unsubscribe: ReadonlyArray<Header> = [
  ["List-Unsubscribe", `<https://mail.example.com/unsubscribe/${"T".repeat(60)}>`],
  ["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"]
]

const composed = (fields = mailOf({})): Buffer =>
  composeMail({ fields, messageId: "<eml_1@example.com>", dateMillis: 1_770_000_000_000 })

const signed = async (raw: Buffer, keys = [key("example.com")], extra = unsubscribe): Promise<Buffer> =>
  Buffer.concat([await signedHead({ raw, extra, keys }), raw])

describe("a signature", () => {
  it(`is verified by others, whatever the message has (seed ${seed})`, async () => {
    const property = fc.asyncProperty(mails, async (fields) => {
      const [verdict] = await verdicts(await signed(composed(fields)))
      assert.strictEqual(verdict?.result, "pass")
      for (const name of [
        "from",
        "to",
        "subject",
        "date",
        "message-id",
        "list-unsubscribe",
        "list-unsubscribe-post"
      ])
        assert.include(verdict?.headers ?? [], name)
    })
    await fc.assert(property, { numRuns, seed })
  }, 600_000)

  it("covers bodies with any white space", async () => {
    const parts = fc.constantFrom("a", " ", "\t", "\r\n", "\r\n\r\n", " \r\n", "b".repeat(100))
    const property = fc.asyncProperty(fc.array(parts, { maxLength: 30 }), async (body) => {
      const raw = Buffer.from(`From: a@example.com\r\nSubject:  a \t b \r\n\tc\r\n\r\n${body.join("")}`)
      const found = (await verdicts(await signed(raw))).map(({ result }) => result)
      assert.deepStrictEqual(found, ["pass"])
    })
    await fc.assert(property, { numRuns, seed })
  }, 600_000)

  it("fails where a bit of the text, of a header or of the unsubscribe link is another", async () => {
    const raw = composed(mailOf({ html: "<p>Hello</p>", text: "Hello\r\n" }))
    const whole = await signed(raw)
    assert.strictEqual((await verdicts(whole))[0]?.result, "pass")
    for (const text of [
      "Hello\r\n",
      "shop@example.com",
      "ann@example.org",
      "TTTT",
      "One-Click",
      "multipart/alt"
    ]) {
      const changed = Buffer.from(whole)
      const at = changed.lastIndexOf(text)
      assert.isAbove(at, -1, text)
      changed[at] = (changed[at] ?? 0) ^ 1
      assert.notStrictEqual((await verdicts(changed))[0]?.result, "pass", text)
    }
  })

  it("is made for each key, and with a hash of the body that is known", async () => {
    const raw = composed()
    const keys = [key("example.com"), key("signalbox.example", "sb2")]
    const found = await verdicts(await signed(raw, keys))
    assert.deepStrictEqual(found.map(({ domain, result }) => `${domain} ${result}`).toSorted(), [
      "example.com pass",
      "signalbox.example pass"
    ])
    const options = { raw, extra: unsubscribe, keys }
    assert.deepStrictEqual(
      await signedHead({ ...options, bodyHash: bodyHashOf(raw) }),
      await signedHead(options)
    )
    const wrong = Buffer.concat([
      await signedHead({ ...options, bodyHash: bodyHashOf(Buffer.from("x")) }),
      raw
    ])
    assert.notInclude(
      (await verdicts(wrong)).map(({ result }) => result),
      "pass"
    )
  })

  it("is not there without a key: the headers of the recipient are", async () => {
    const head = await signedHead({
      raw: Buffer.from("From: a@b.example\r\n\r\n"),
      extra: unsubscribe,
      keys: []
    })
    const [first, second] = unsubscribe
    assert.strictEqual(head.toString(), `List-Unsubscribe:\r\n ${first?.[1]}\r\n${second?.join(": ")}\r\n`)
  })

  it("has no line over 78 characters, but for a long URL", async () => {
    const raw = composed(mailOf({ headers: [["References", "<a@example.com>"]] }))
    const head = await signedHead({
      raw,
      extra: unsubscribe,
      keys: [key(`${"d".repeat(40)}.example.com`)]
    })
    for (const line of head.toString().split("\r\n"))
      if (!line.includes("https:")) assert.isAtMost(line.length, 78, line)
  })

  it("is refused of what is no key", async () => {
    const bad = { domain: "example.com", selector: "sb1", privateKey: "not a key" }
    const made = signedHead({ raw: Buffer.from("From: a@b.example\r\n\r\n"), extra: [], keys: [bad] })
    const refusal: unknown = await made.catch((error: unknown) => error)
    assert.instanceOf(refusal, Error)
  })
})
