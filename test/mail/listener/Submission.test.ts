import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createTransport, type SendMailOptions } from "nodemailer"
import PostalMime from "postal-mime"
import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { dsnOf } from "../bounces/Reports.ts"
import { Relay, relayedServer } from "../RelayedServer.ts"
import { live, makeStage } from "../Stage.ts"
import { talkTo } from "./SmtpTalk.ts"

/** The port that the log tells. */
const portOf = Effect.map(TestServer, ({ logged }) => {
  const lines = logged().map((line): unknown => JSON.parse(line))
  const said = lines.filter(isJsonRecord).find(({ message }) => message === "Mail is taken by SMTP")
  return Number(said?.["port"])
})

interface Sent {
  /** of the reply, whatever it is */
  readonly code: number
  readonly reply: string
}

/** As a program sends mail by nodemailer, from loopback in plain text. */
const sendBy = (port: number, key: string, mail: SendMailOptions): Effect.Effect<Sent> =>
  Effect.promise(async () => {
    const client = createTransport({ host: "127.0.0.1", port, auth: { user: "any", pass: key } })
    try {
      const { response } = await client.sendMail(mail)
      return { code: Number(response.slice(0, 3)), reply: response }
    } catch (error) {
      const { response = String(error), responseCode = 0 } = error as {
        response?: string
        responseCode?: number
      }
      return { code: responseCode, reply: response }
    }
  })

const idIn = ({ reply }: Sent): string => /eml_\w+/.exec(reply)?.[0] ?? `no id in ${reply}`

const hello = {
  from: "Shop <shop@example.com>",
  to: "Ada <ada@example.org>",
  subject: "Hello",
  text: "Hello, Ada."
}

const server = relayedServer({
  mailListener: { port: 0, certificate: undefined },
  mailDomains: {
    spf: [],
    bounceDomain: "bounce.test",
    hostname: undefined,
    fromDomains: new Set(["*"]),
    nameServers: []
  },
  limits: { mailSmtpLoginsPerMinute: 3, mailRatePerMinute: 30 }
})

layer(server, live)("a mail by SMTP", (it) => {
  it.effect("goes the way of POST /send: to the envelope, with HTML, its pictures and attachments", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      const { get, key, read } = yield* makeStage
      const sent = yield* sendBy(port, key, {
        ...hello,
        to: "Ada <ada@example.org>, Eve <eve@example.org>",
        cc: "cc@example.org",
        bcc: "blind@example.org",
        html: '<p>Grüße <img src="cid:logo@x"></p>',
        attachments: [
          { filename: "logo.png", cid: "logo@x", content: Buffer.from([1, 2, 3]) },
          { filename: "terms.txt", content: "Terms\n" }
        ],
        headers: { "X-Campaign-ID": "spring", "User-Agent": "Client" },
        envelope: {
          from: "other@example.net",
          to: ["ada@example.org", "cc@example.org", "blind@example.org"]
        }
      })
      assert.strictEqual(sent.code, 250, sent.reply)
      const id = idIn(sent)
      const email = yield* read(id, 10)
      assert.deepStrictEqual(
        email.recipients.map(({ address, kind, status }) => [address, kind, status]),
        [
          ["ada@example.org", "to", "sent"],
          ["cc@example.org", "cc", "sent"],
          ["blind@example.org", "bcc", "sent"]
        ]
      )
      const { bytes } = yield* get(`/${id}/raw`)
      const raw = Buffer.from(bytes).toString("latin1")
      assert.notInclude(raw, "blind@")
      assert.notInclude(raw, "User-Agent")
      const mail = yield* Effect.promise(() => PostalMime.parse(bytes))
      assert.deepStrictEqual(
        [mail.to?.map(({ address }) => address), mail.messageId, mail.html?.trim()],
        [["ada@example.org", "eve@example.org"], `<${id}@example.com>`, '<p>Grüße <img src="cid:logo@x"></p>']
      )
      assert.deepStrictEqual(
        mail.attachments.map(({ filename, related }) => [filename, related]),
        [
          ["logo.png", true],
          ["terms.txt", undefined]
        ]
      )
      assert.strictEqual(textOf(yield* get(`/${id}`), "campaign"), "spring")
      const { ask } = yield* TestServer
      const metrics = Buffer.from((yield* ask("GET", "/metrics")).bytes).toString()
      assert.match(
        metrics,
        /signalbox_mail_smtp_total\{[^}]*kind="submission"[^}]*outcome="taken"[^}]*\} [1-9]/
      )
      assert.include(metrics, "signalbox_mail_smtp_connections")
    })
  )

  it.effect("of 2 MiB is read in a thread, to the same bytes", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      const { get, key } = yield* makeStage
      const content = Buffer.alloc(2 * 1024 * 1024, "0123456789")
      const sent = yield* sendBy(port, key, { ...hello, attachments: [{ filename: "a.bin", content }] })
      const { bytes } = yield* get(`/${idIn(sent)}/raw`)
      const { attachments } = yield* Effect.promise(() => PostalMime.parse(bytes))
      assert.isTrue(content.equals(Buffer.from(attachments[0]?.content as ArrayBuffer)))
    })
  )

  it.effect(
    "that is repeated, by a client that missed the reply, is one; without a Message-ID it is two",
    () =>
      Effect.gen(function* () {
        const port = yield* portOf
        const { get, key } = yield* makeStage
        const lines = "From: shop@example.com\r\nTo: ada@example.org\r\nSubject: Hello\r\n"
        const hand = (raw: string, to: string) =>
          Effect.map(sendBy(port, key, { raw, envelope: { from: "shop@example.com", to } }), idIn)
        const identified = `Message-ID: <1@client.test>\r\n${lines}\r\nx\r\n`
        const first = yield* hand(identified, "ada@example.org")
        assert.strictEqual(yield* hand(identified, "ada@example.org"), first)
        assert.notStrictEqual(yield* hand(identified, "bob@example.org"), first)
        const plain = `${lines}\r\nx\r\n`
        assert.notStrictEqual(yield* hand(plain, "ada@example.org"), yield* hand(plain, "ada@example.org"))
        const { meta } = (yield* get("")).json as { readonly meta: { readonly total: number } }
        assert.strictEqual(meta.total, 4)
      })
  )

  it.effect("is refused with the field at fault, and put off for a rate", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      const { key } = yield* makeStage
      assert.deepStrictEqual(yield* sendBy(port, key, { ...hello, subject: "" }), {
        code: 554,
        reply: "554 subject: is required"
      })
      assert.deepStrictEqual(
        yield* sendBy(port, key, { ...hello, headers: { "X-SES-Configuration-Set": "x" } }),
        {
          code: 554,
          reply: "554 headers.X-Ses-Configuration-Set: not allowed"
        }
      )
      const to = (count: number) => Array.from({ length: count }, (_, at) => `r${at}@example.org`)
      assert.strictEqual((yield* sendBy(port, key, { ...hello, to: to(50) })).code, 250)
      assert.deepStrictEqual(yield* sendBy(port, key, { ...hello, to: to(50) }), {
        code: 451,
        reply: "451 Sending limit reached (30 recipients per minute)"
      })
    })
  )

  it.effect("is of those with an account key, who tell it right; the log has no key", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      const { logged, makeKey } = yield* TestServer
      const { key } = yield* makeStage
      const router = yield* makeKey({ kind: "router" })
      assert.strictEqual((yield* sendBy(port, router.key, hello)).code, 535)
      const { code } = yield* talkTo(port, "127.0.0.2")
      yield* code("EHLO client.test")
      const login = (secret: string) =>
        code(`AUTH PLAIN ${Buffer.from(`\0any\0${secret}`).toString("base64")}`)
      for (const secret of [key.slice(0, -1), "x", ""]) assert.strictEqual(yield* login(secret), "535")
      // Three wrong ones are all that an address may give in a minute.
      assert.strictEqual(yield* login(key), "454")
      assert.notInclude(logged().join("\n"), key)
    })
  )

  it.effect("that comes back to its return path has bounced", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      const sink = yield* Relay
      const { key, read } = yield* makeStage
      const id = idIn(yield* sendBy(port, key, { ...hello, to: "gone@example.org" }))
      yield* read(id, 10)
      const path = sink.accepted.find(({ to }) => to.includes("gone@example.org"))?.from ?? ""
      assert.match(path, /^b\+[0-9a-z]{50}@bounce\.test$/)
      const report = dsnOf([{ address: "gone@example.org" }], { to: path }).toString("latin1")
      const { code } = yield* talkTo(port)
      yield* code("EHLO mx.test")
      yield* code("MAIL FROM:<>")
      assert.strictEqual(yield* code(`RCPT TO:<${path.replace(/.@/, "!@")}>`), "550")
      assert.strictEqual(yield* code(`RCPT TO:<${path.toUpperCase()}>`), "250")
      yield* code("DATA")
      assert.strictEqual(yield* code(`${report}\r\n.`), "250")
      const { recipients } = yield* read(id)
      assert.deepStrictEqual(
        recipients.map(({ status }) => status),
        ["bounced"]
      )
    })
  )
})
