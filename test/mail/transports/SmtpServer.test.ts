import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { certificateFor } from "#test/harness/Certificate.ts"
import { handoverOf, relayTo, text } from "./RelayStage.ts"

const certificate = certificateFor(["127.0.0.1"])
const login = { user: "ada", password: Redacted.make("pässword") }

/** A server by other hands, which checks logins, refuses `full@` and `gone@`, and keeps the messages. */
const serve = (options: SMTPServerOptions) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: SMTPServer; readonly port: number; readonly messages: Array<string> }>(
      (resume) => {
        const messages: Array<string> = []
        const refusal = (code: number) => Object.assign(new Error("no"), { responseCode: code })
        const server = new SMTPServer({
          ...options,
          ...certificate,
          onAuth: ({ password, username }, _, done) =>
            username === "ada" && password === "pässword"
              ? done(null, { user: username })
              : done(refusal(535)),
          onRcptTo: ({ address }, _, done) =>
            done(
              address.startsWith("full") ? refusal(452) : address.startsWith("gone") ? refusal(550) : null
            ),
          onData: (stream, _, done) => {
            let message = ""
            stream.setEncoding("utf8")
            stream.on("data", (chunk: string) => (message += chunk))
            stream.once("end", () => {
              messages.push(message)
              done()
            })
          }
        })
        const listener = server.listen(0, "127.0.0.1", () =>
          resume(Effect.succeed({ server, port: (listener.address() as AddressInfo).port, messages }))
        )
        // Clients that refuse the certificate break off.
        server.on("error", () => undefined)
      }
    ),
    ({ server }) => Effect.callback<void>((resume) => server.close(() => resume(Effect.void)))
  )

describe("smtp-server", () => {
  for (const [name, tls, options] of [
    ["over TLS with PLAIN", "implicit", { secure: true, authMethods: ["PLAIN"] }],
    ["after STARTTLS with LOGIN", "required", { authMethods: ["LOGIN"] }],
    ["after STARTTLS without pipelining", "required", { hidePIPELINING: true }]
  ] as const)
    it.live(`takes messages ${name}, and refuses recipients one by one`, () =>
      Effect.gen(function* () {
        const { messages, port } = yield* serve({ ...options, closeTimeout: 100 } as SMTPServerOptions)
        const relay = yield* relayTo(port, { server: { tls, login }, certificates: certificate.cert })
        const to = (address: string) =>
          relay.handOver(handoverOf({ envelope: { from: "from@sender.test", to: address } }))
        const tags = []
        for (const address of [
          "a@recipient.test",
          "full@recipient.test",
          "gone@recipient.test",
          "b@recipient.test"
        ])
          tags.push((yield* to(address))._tag)
        assert.deepStrictEqual(tags, ["Sent", "Deferred", "Bounced", "Sent"])
        assert.deepStrictEqual(messages, [text, text])
        const other = yield* relayTo(port, {
          server: { tls, login: { user: "ada", password: Redacted.make("wrong") } },
          certificates: certificate.cert
        })
        assert.deepInclude(yield* other.handOver(handoverOf()), { _tag: "RouteDown" })
      })
    )
})
