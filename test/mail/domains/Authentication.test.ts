import { Resolver } from "node:dns/promises"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { authenticate, type DNSResolver } from "mailauth"
import { createTransport } from "nodemailer"
import type { MailDomains } from "#src/mail/domains/MailDomains.ts"
import { DnsServer } from "#test/mail/DnsServer.ts"
import { DomainStage, domainStage, makeOwner, shown } from "./DomainStage.ts"

const live = { excludeTestServices: true } as const

type SigningKeys = ReturnType<MailDomains["Service"]["signingKeys"]>

/** A message that nodemailer signs with a key of ours. */
const signedMail = async (from: string, [key]: SigningKeys): Promise<Buffer> => {
  if (key === undefined) throw new Error("no key signs")
  const { domain: domainName, selector: keySelector } = key
  const privateKey = key.privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  const transport = createTransport({
    streamTransport: true,
    buffer: true,
    newline: "windows",
    dkim: { domainName, keySelector, privateKey }
  })
  const { message } = await transport.sendMail({
    from,
    to: "b@example.org",
    subject: "Zahlung für März",
    text: "é\n"
  })
  if (!Buffer.isBuffer(message)) throw new Error("no message")
  return message
}

/** The verdicts of an independent checker on mail that came from an address that SPF names. */
const makeVerdicts = Effect.map(DnsServer, ({ address }) => {
  const names = new Resolver()
  names.setServers([address])
  const resolver: DNSResolver = (name, type) => names.resolve(name, type) as Promise<Array<string>>
  return (from: string, message: Buffer) =>
    Effect.promise(async () => {
      const [, domain = ""] = from.split("@")
      const { dkim, dmarc, spf } = await authenticate(message, {
        ip: "192.0.2.1",
        helo: `mx.${domain}`,
        sender: from,
        mta: "mx.example.org",
        resolver
      })
      return [
        ...dkim.results.map(
          ({ signingDomain, selector, status }) => `${selector} ${signingDomain} ${status.result}`
        ),
        `spf ${spf === false ? "none" : spf.status.result}`,
        `dmarc ${dmarc === false ? "none" : dmarc.status.result}`
      ]
    })
})

layer(domainStage, live)("an independent checker", (it) => {
  it.effect(
    "accepts mail from a domain and from its sub-domains, once the lines of the zone are published",
    () =>
      Effect.gen(function* () {
        const { domains } = yield* DomainStage
        const verdicts = yield* makeVerdicts
        const { id: userId, own } = yield* makeOwner
        const { name } = yield* own()
        const signed = (from: string) =>
          Effect.promise(() => signedMail(from, domains.signingKeys(userId, from.split("@")[1] ?? "")))
        const message = yield* signed(`a@${name}`)
        assert.deepStrictEqual(yield* verdicts(`a@${name}`, message), [
          `sb1 ${name} pass`,
          "spf pass",
          "dmarc pass"
        ])
        const below = `a@news.${name}`
        const [dkim, , dmarc] = yield* verdicts(below, yield* signed(below))
        assert.deepStrictEqual([dkim, dmarc], [`sb1 ${name} pass`, "dmarc pass"])
        const flipped = Buffer.from(message)
        flipped[flipped.length - 4] = (flipped[flipped.length - 4] ?? 0) ^ 1
        const [broken] = yield* verdicts(`a@${name}`, flipped)
        assert.strictEqual(broken, `sb1 ${name} neutral`)
      })
  )

  it.effect("accepts every message that was signed before, during and after a rotation", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const { domains } = yield* DomainStage
      const verdicts = yield* makeVerdicts
      const { id: userId, own, rotate, verified } = yield* makeOwner
      const { id, name } = yield* own()
      const verify = verified(id)
      const from = `a@${name}`
      const messages: Array<Buffer> = []
      const send = Effect.promise(async () => {
        messages.push(await signedMail(from, domains.signingKeys(userId, name)))
      })
      yield* send
      const rotated = shown(200, yield* rotate(id))
      yield* send
      yield* verify
      yield* send
      dns.zone(rotated.records.find((record) => record.name.startsWith("sb2."))?.zone ?? "")
      yield* send
      yield* Effect.all([verify, send, send, send], { concurrency: "unbounded" })
      yield* send
      const checked = yield* Effect.forEach(messages, (message) => verdicts(from, message))
      const first = checked.map(([dkim]) => dkim)
      assert.deepStrictEqual(
        first.slice(0, 4),
        Array.from({ length: 4 }, () => `sb1 ${name} pass`)
      )
      for (const dkim of first) assert.match(dkim ?? "", / pass$/)
      assert.strictEqual(first.at(-1), `sb2 ${name} pass`)
    })
  )
})
