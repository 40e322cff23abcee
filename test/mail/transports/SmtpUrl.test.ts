import { assert, describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import { smtpServerOf } from "#src/mail/transports/SmtpUrl.ts"

const read = (text: string) => {
  const server = Result.getOrThrowWith(smtpServerOf(text), ({ fault }) => new Error(fault))
  const login = server.login && [server.login.user, Redacted.value(server.login.password)]
  return [server.host, server.port, server.tls, login]
}

describe("SMTP_URL", () => {
  it("names the relay, the way of its TLS and the login", () => {
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<unknown>]> = [
      ["smtps://ada:secret@mail.test:465", ["mail.test", 465, "implicit", ["ada", "secret"]]],
      ["smtps://mail.test", ["mail.test", 465, "implicit", null]],
      ["smtp://mail.test", ["mail.test", 587, "required", null]],
      ["smtp://mail.test:25/", ["mail.test", 25, "required", null]],
      ["smtp://mail.test:1025?tls=none", ["mail.test", 1025, "none", null]],
      [
        "smtp://ada%40mail.test:p%25%3A%2F%C3%A9@mail.test",
        ["mail.test", 587, "required", ["ada@mail.test", "p%:/é"]]
      ],
      ["smtp://localhost:25", ["localhost", 25, "none", null]],
      ["smtp://127.3.2.1", ["127.3.2.1", 587, "none", null]],
      ["smtp://[::1]:25", ["::1", 25, "none", null]],
      ["smtps://[2001:db8::1]", ["2001:db8::1", 465, "implicit", null]],
      ["smtps://localhost", ["localhost", 465, "implicit", null]],
      // Names that look like loopback ones are reached over the network.
      ["smtp://127.example.test", ["127.example.test", 587, "required", null]],
      ["smtp://localhost.example.test", ["localhost.example.test", 587, "required", null]]
    ]
    for (const [text, expected] of cases) assert.deepStrictEqual(read(text), expected, text)
  })

  it("is refused by name, never with its text, where a part of it would be guessed or ignored", () => {
    const cases: ReadonlyArray<readonly [string, RegExp]> = [
      ["mail.test:25", /^takes smtps:/],
      ["http://mail.test", /^takes smtps:/],
      ["smtp://", /^takes smtps:/],
      ["smtp://mail.test:99999", /^takes smtps:/],
      ["smtp://mail.test:0", /port from 1 to 65535/],
      ["smtp://mail.test/queue", /nothing after the port/],
      ["smtp://mail.test#top", /nothing after the port/],
      ["smtp://mail.test?tls=maybe", /no parameter but tls=none/],
      ["smtp://mail.test?tls=none&pool=1", /no parameter but tls=none/],
      ["smtps://mail.test?tls=none", /both smtps and tls=none/],
      ["smtp://hidden@mail.test", /both a user and a password/],
      ["smtp://:hidden@mail.test", /both a user and a password/],
      ["smtp://ada:hidden%@mail.test", /%25/],
      ["smtp://ada:hidden%0d%0aX@mail.test", /control character/]
    ]
    for (const [text, fault] of cases) {
      const refused = Result.getOrThrow(Result.flip(smtpServerOf(text)))
      assert.strictEqual(refused.variable, "SMTP_URL")
      assert.match(refused.fault, fault, text)
      assert.notInclude(refused.fault, "hidden")
    }
  })
})
