import { writeFileSync, mkdtempSync } from "node:fs"
import { Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { createTransport } from "nodemailer"
import type { SMTPServerSession } from "smtp-server"
import { certificateFor } from "#test/harness/Certificate.ts"
import { eventually } from "#test/harness/Eventually.ts"
import {
  BadRequest,
  Conflict,
  Forbidden,
  invalidField,
  PayloadTooLarge,
  type Problem,
  RateLimited,
  ServiceUnavailable,
  StorageFull
} from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { makeHandlers } from "#src/mail/listener/SmtpHandlers.ts"
import { SmtpClients } from "#src/mail/listener/SmtpClients.ts"
import { key, login, stage, standIns } from "./ListenerStage.ts"
import { type SmtpTalk, talkTo } from "./SmtpTalk.ts"

const message = "Subject: hello\r\n\r\nhello\r\n"

/** Up to the end of DATA; answers the last code. */
const handOver = Effect.fnUntraced(function* ({ code }: SmtpTalk, to: string, text = message) {
  yield* code("MAIL FROM:<ada@example.com>")
  const rcpt = yield* code(`RCPT TO:<${to}>`)
  if (rcpt !== "250") return rcpt
  yield* code("DATA")
  return yield* code(`${text}.`)
})

const filesOf = Effect.sync(() => {
  const directory = mkdtempSync(join(tmpdir(), "smtp-"))
  const { cert, key: secret } = certificateFor(["127.0.0.1"])
  const files = { cert: join(directory, "cert.pem"), key: join(directory, "key.pem") }
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, secret)
  return { files, ca: cert }
})

describe("the SMTP listener", () => {
  it.live("takes mail to valid return paths from everybody, and nothing else without a login", () =>
    Effect.gen(function* () {
      const { taken, talk } = yield* stage()
      const one = yield* talk
      assert.strictEqual(yield* handOver(one, "b+good@bounce.test"), "250")
      assert.deepStrictEqual(taken, [{ to: ["good"], text: message }])
      for (const address of ["b+forged@bounce.test", "ada@bounce.test", "ada@example.org"]) {
        assert.strictEqual(yield* handOver(one, address), "550")
        yield* one.code("RSET")
      }
      assert.strictEqual(yield* one.code("RCPT TO:<postmaster>"), "503")
      assert.lengthOf(taken, 1)
    })
  )

  it.live("says which setting names another port where its own is taken", () =>
    Effect.gen(function* () {
      const { port } = yield* stage()
      const failed = yield* Effect.flip(stage({ port }))
      assert.match(failed.message, /^listen EADDRINUSE.*MAIL_SMTP_PORT chooses another$/)
    })
  )

  it.live("reads 256 KiB of a bounce, and takes all of it", () =>
    Effect.gen(function* () {
      const { taken, talk } = yield* stage({ limits: { mailSmtpBounceBytes: 1_000 } })
      const text = `${"x".repeat(98)}\r\n`.repeat(50)
      assert.strictEqual(yield* handOver(yield* talk, "b+good@bounce.test", text), "250")
      assert.strictEqual(taken[0]?.text, text.slice(0, 1_000))
    })
  )

  it.live("takes submissions after a login, PLAIN or LOGIN", () =>
    Effect.gen(function* () {
      const { taken, talk } = yield* stage()
      const one = yield* talk
      assert.strictEqual(yield* one.code(login.slice(0, -4)), "535")
      assert.strictEqual(yield* one.code(login), "235")
      assert.strictEqual(yield* handOver(one, "Bob@EXAMPLE.org"), "250")
      assert.deepStrictEqual(taken, [{ owner: "ada", to: ["Bob@example.org"], text: message }])
      const two = yield* talk
      yield* two.code("AUTH LOGIN")
      yield* two.code(Buffer.from("any name").toString("base64"))
      assert.strictEqual(yield* two.code(Buffer.from(key).toString("base64")), "235")
      assert.strictEqual(yield* handOver(two, "a@b@example.org"), "501")
      yield* two.code("RSET")
      assert.strictEqual(yield* handOver(two, '"a b"@example.org'), "501")
    })
  )

  it.live("offers no STARTTLS without a certificate, whose key would be public", () =>
    Effect.gen(function* () {
      const { port } = yield* stage()
      const one = yield* talkTo(port)
      const offered = yield* one.say("EHLO client.test")
      assert.include(offered, "AUTH PLAIN LOGIN")
      assert.include(offered, "SIZE 26214400")
      for (const absent of ["STARTTLS", "SMTPUTF8", "XCLIENT"]) assert.notInclude(offered, absent)
      for (const command of ["STARTTLS", "XCLIENT ADDR=127.0.0.2", "WIZ x"])
        assert.strictEqual(yield* one.code(command), "500")
    })
  )

  it.live("takes logins over TLS of its certificate, with nodemailer as the client", () =>
    Effect.gen(function* () {
      const { ca, files } = yield* filesOf
      const { port, taken } = yield* stage({ certificate: files, limits: { mailSmtpCertificateMillis: 50 } })
      const sendTrusting = (trusted: string) =>
        Effect.tryPromise(() =>
          createTransport({
            host: "127.0.0.1",
            port,
            requireTLS: true,
            tls: { ca: trusted },
            auth: { user: "ada", pass: key }
          }).sendMail({ from: "ada@example.com", to: "bob@example.org", bcc: "c@example.org", text: "x" })
        )
      const { response } = yield* sendTrusting(ca)
      assert.strictEqual(response, "250 Accepted as eml_1")
      assert.deepStrictEqual(taken[0]?.to, ["bob@example.org", "c@example.org"])
      // A renewal that is half done leaves the certificate that was there.
      const renewed = certificateFor(["127.0.0.1"])
      writeFileSync(files.cert, renewed.cert)
      yield* Effect.sleep(200)
      yield* sendTrusting(ca)
      writeFileSync(files.key, renewed.key)
      yield* eventually("the new one is shown", Effect.as(sendTrusting(renewed.cert), true))
    })
  )
})

describe("a submission that is refused", () => {
  const problems: ReadonlyArray<readonly [problem: Problem, reply: string]> = [
    [invalidField("to[0]", '"a@" is not an address'), '554 to[0]: "a@" is not an address'],
    [Forbidden.of("from: example.com is not verified for this account"), "550 from: example.com is not"],
    [PayloadTooLarge.of("The encoded message is larger than 25 MiB"), "552 The encoded message"],
    [RateLimited.of("Sending limit reached"), "451 Sending limit reached"],
    [ServiceUnavailable.of("The database is away"), "451 The database is away"],
    [Conflict.of("The same request is under way"), "451 The same request"],
    [StorageFull.of("The disk is full"), "452 The disk is full"],
    [BadRequest.of("two\r\n250 lines of ü"), "554 two??250 lines of ?"]
  ]
  for (const [problem, expected] of problems)
    it.live(`gets ${expected.slice(0, 3)} for ${problem._tag}: ${expected.slice(4)}`, () =>
      Effect.gen(function* () {
        const one = yield* (yield* stage({ handling: Effect.fail(problem) })).talk
        yield* one.code(login)
        yield* one.code("MAIL FROM:<>")
        yield* one.code("RCPT TO:<b@example.org>")
        yield* one.code("DATA")
        const reply = yield* one.say(`${message}.`)
        assert.isTrue(reply.startsWith(expected), reply)
        assert.strictEqual(yield* one.code("NOOP"), "250")
      })
    )

  it.live("gets 451 for a fault of the server, with nothing of it; a long reason is cut", () =>
    Effect.gen(function* () {
      const dying = yield* (yield* stage({ handling: Effect.die(new Error("secret")) })).talk
      yield* dying.code(login)
      assert.strictEqual(yield* handOver(dying, "b@example.org"), "451")
      const long = yield* (yield* stage({ handling: Effect.fail(BadRequest.of("x".repeat(9_999))) })).talk
      yield* long.code(login)
      yield* long.code("MAIL FROM:<>")
      yield* long.code("RCPT TO:<b@example.org>")
      yield* long.code("DATA")
      assert.isAtMost((yield* long.say(`${message}.`)).length, 510)
    })
  )
})

describe("an SMTP client of another machine", () => {
  it.effect("logs in over TLS alone", () =>
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const clients = new SmtpClients(limits, () => assert.fail("it is not sent away"))
      const { options } = yield* makeHandlers(clients, ["STARTTLS"])
      const disabledFor = (remoteAddress: string) => {
        const session = { id: remoteAddress, remoteAddress } as SMTPServerSession
        options.onConnect(session, (error) => assert.isUndefined(error))
        const { disabledCommands } = session
        options.onSecure(new Socket(), session, (error) => assert.isUndefined(error))
        assert.isUndefined(session.disabledCommands)
        return disabledCommands
      }
      assert.deepStrictEqual(disabledFor("192.0.2.1"), ["STARTTLS", "AUTH"])
      assert.deepStrictEqual(disabledFor("2001:db8::1"), ["STARTTLS", "AUTH"])
      for (const address of ["127.0.0.1", "127.8.9.10", "::1"]) assert.isUndefined(disabledFor(address))
      clients.close()
    }).pipe(Effect.provide(standIns([])))
  )
})

describe("the bounds of the SMTP listener", () => {
  it.live("refuses what is larger than SIZE, told or not", () =>
    Effect.gen(function* () {
      const { taken, talk } = yield* stage({ limits: { mailBytes: 10_000 } })
      const one = yield* talk
      yield* one.code(login)
      assert.strictEqual(yield* one.code("MAIL FROM:<a@example.com> SIZE=10001"), "552")
      assert.strictEqual(yield* handOver(one, "b@example.org", `${"x".repeat(98)}\r\n`.repeat(101)), "552")
      assert.strictEqual(yield* handOver(one, "b@example.org", `${"x".repeat(98)}\r\n`.repeat(100)), "250")
      assert.lengthOf(taken, 1)
    })
  )

  it.live("defers submissions that are too large together", () =>
    Effect.gen(function* () {
      const { talk } = yield* stage({ limits: { mailSmtpBytes: 10_000 } })
      const one = yield* talk
      yield* one.code(login)
      assert.strictEqual(yield* handOver(one, "b@example.org", `${"x".repeat(98)}\r\n`.repeat(101)), "451")
      // Nothing is held any more of that, nor of those that were taken.
      const most = `${"x".repeat(98)}\r\n`.repeat(40)
      for (let at = 0; at < 4; at++) assert.strictEqual(yield* handOver(one, "b@example.org", most), "250")
    })
  )

  it.live("has 50 recipients of a message", () =>
    Effect.gen(function* () {
      const { talk } = yield* stage()
      const { code } = yield* talk
      yield* code(login)
      yield* code("MAIL FROM:<>")
      for (let at = 1; at <= 50; at++) assert.strictEqual(yield* code(`RCPT TO:<r${at}@example.org>`), "250")
      assert.strictEqual(yield* code("RCPT TO:<r51@example.org>"), "452")
      assert.strictEqual(yield* code("RCPT TO:<R50@example.org>"), "250")
    })
  )

  it.live("sends away those who were refused too often, or say too much, or too long a line", () =>
    Effect.gen(function* () {
      const { talk } = yield* stage({ limits: { mailSmtpRefusals: 3, mailSmtpCommands: 30 } })
      const refused = yield* talk
      yield* refused.code("MAIL FROM:<>")
      for (let at = 0; at < 3; at++) assert.strictEqual(yield* refused.code("RCPT TO:<x@example.org>"), "550")
      assert.match(yield* refused.reply, /^421 Too many refusals/)
      assert.strictEqual(yield* refused.reply, "")
      const talker = yield* talk
      // EHLO was the first.
      for (let at = 1; at < 30; at++) assert.strictEqual(yield* talker.code("NOOP"), "250")
      assert.match(yield* talker.say("NOOP"), /^421 Too many commands/)
      const long = yield* talk
      assert.strictEqual(yield* long.code(`NOOP ${"x".repeat(2_000)}`), "421")
    })
  )

  it.live("counts commands and refusals anew after each message", () =>
    Effect.gen(function* () {
      const { talk } = yield* stage({ limits: { mailSmtpRefusals: 2, mailSmtpCommands: 9 } })
      const one = yield* talk
      for (let at = 0; at < 5; at++) {
        yield* one.code("MAIL FROM:<>")
        assert.strictEqual(yield* one.code("RCPT TO:<x@example.org>"), "550")
        yield* one.code("RSET")
        assert.strictEqual(yield* handOver(one, "b+good@bounce.test"), "250")
      }
    })
  )

  it.live("lets in so many connections, of one address and of all", () =>
    Effect.gen(function* () {
      const { port } = yield* stage({ limits: { mailSmtpConnections: 4, mailSmtpConnectionsPerAddress: 2 } })
      const [first, second] = [yield* talkTo(port), yield* talkTo(port)]
      assert.match(first.greeting, /^220 /)
      assert.match(second.greeting, /^220 /)
      assert.match((yield* talkTo(port)).greeting, /^421 Too many connections from your address/)
      assert.match((yield* talkTo(port, "127.0.0.2")).greeting, /^220 /)
      first.end()
      assert.strictEqual(yield* first.reply, "")
      yield* eventually(
        "its place is free",
        Effect.scoped(Effect.map(talkTo(port), ({ greeting }) => greeting.startsWith("220 ")))
      )
    })
  )

  it.live("sends away those who say nothing, and those who drip", () =>
    Effect.gen(function* () {
      const silent = yield* (yield* stage({ limits: { mailSmtpIdleMillis: 200 } })).talk
      assert.match(yield* silent.reply, /^421 Timeout/)
      const { taken, talk } = yield* stage({ limits: { mailSmtpMessageMillis: 400 } })
      const one = yield* talk
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.delay(
            Effect.sync(() => one.write("x")),
            20
          )
        )
      )
      assert.match(yield* one.reply, /^421 Too slow/)
      assert.deepStrictEqual(taken, [])
    })
  )
})

describe("the order of an SMTP session", () => {
  it.live("is kept for commands that come at once, and bytes of a message are no commands", () =>
    Effect.gen(function* () {
      const { taken, talk } = yield* stage()
      const { reply, write } = yield* talk
      const text =
        "Subject: x\r\n\r\nbefore\n.\nMAIL FROM:<evil@example.org>\n.\r\nRCPT TO:<x@example.org>\r\n"
      write(
        `${login}\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.org>\r\nDATA\r\n${text}.\r\nNOOP\r\nQUIT\r\n`
      )
      const codes = []
      for (let at = 0; at < 7; at++) codes.push((yield* reply).slice(0, 3))
      assert.deepStrictEqual(codes, ["235", "250", "250", "354", "250", "250", "221"])
      // Only CRLF . CRLF is an end (RFC 5321, 4.1.1.4): one message, which the room refuses for its line ends.
      assert.deepStrictEqual(taken, [{ owner: "ada", to: ["b@example.org"], text }])
    })
  )

  it.live("does not take what a client says before the greeting, half a message, or HTTP", () =>
    Effect.gen(function* () {
      const { port, taken, talk } = yield* stage()
      const half = yield* talk
      yield* half.code("MAIL FROM:<>")
      yield* half.code("RCPT TO:<b+good@bounce.test>")
      yield* half.code("DATA")
      half.write("Subject: half\r\n\r\n..")
      half.end()
      const http = yield* talkTo(port)
      assert.strictEqual(yield* http.code("POST / HTTP/1.1"), "421")
      assert.strictEqual(yield* handOver(yield* talk, "b+good@bounce.test"), "250")
      assert.deepStrictEqual(
        taken.map(({ text }) => text),
        [message]
      )
    })
  )

  it.live("ends with the server: a message under way is taken, and idle clients are sent away", () =>
    Effect.gen(function* () {
      const latch = yield* Latch.make()
      const { port, stop, taken, talk } = yield* stage({ handling: latch.await })
      const [idle, busy, late] = [yield* talk, yield* talk, yield* talk]
      yield* late.code("MAIL FROM:<>")
      yield* busy.code(login)
      yield* busy.code("MAIL FROM:<>")
      yield* busy.code("RCPT TO:<b@example.org>")
      yield* busy.code("DATA")
      const stopping = yield* Effect.forkChild(stop)
      assert.match(yield* idle.reply, /^421 /)
      assert.strictEqual(yield* idle.reply, "")
      assert.strictEqual(yield* Effect.map(talkTo(port), ({ greeting }) => greeting), "")
      busy.write(`${message}.\r\n`)
      yield* latch.open
      assert.match(yield* busy.reply, /^250 /)
      assert.match(yield* busy.reply, /^421 /)
      assert.lengthOf(taken, 1)
      // Its transaction goes on as long as the server waits.
      assert.strictEqual(yield* late.code("RCPT TO:<b+good@bounce.test>"), "250")
      yield* late.code("RSET")
      assert.strictEqual((yield* late.reply).slice(0, 3), "421")
      yield* Fiber.join(stopping)
    })
  )
})
