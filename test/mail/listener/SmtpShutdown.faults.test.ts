import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { freePort, type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { type SmtpTalk, talkTo } from "./SmtpTalk.ts"

const message = "From: shop@example.com\r\nTo: ada@example.org\r\nSubject: Hello\r\n\r\nHello, Ada.\r\n"

const startWith = (port: number): Promise<ServerProcess> =>
  startServer({ env: { ROOMS: "accounts,mail", MAIL_SMTP_PORT: String(port) } })

/** Logs in and says all but the last line of a message. */
const begin = Effect.fnUntraced(function* ({ code, write }: SmtpTalk, key: string) {
  yield* code("EHLO client.test")
  const login = Buffer.from(`\0any\0${key}`).toString("base64")
  assert.strictEqual(yield* code(`AUTH PLAIN ${login}`), "235")
  yield* code("MAIL FROM:<shop@example.com>")
  yield* code("RCPT TO:<ada@example.org>")
  assert.strictEqual(yield* code("DATA"), "354")
  write(message)
})

it.live("a server that is told to stop takes the message that is being handed over, and keeps it", () =>
  Effect.gen(function* () {
    const port = yield* Effect.promise(freePort)
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startWith(port)),
      (started) => Effect.promise(() => started.dispose())
    )
    const [idle, busy] = [yield* talkTo(port), yield* talkTo(port)]
    yield* begin(busy, server.adminKey())
    const ended = server.stop("SIGTERM")
    assert.match(yield* idle.reply, /^421 /)
    const accepted = yield* busy.say(".")
    assert.match(accepted, /^250 Accepted as eml_/)
    assert.match(yield* busy.reply, /^421 /)
    assert.strictEqual(yield* Effect.promise(() => ended), 0)

    yield* Effect.promise(() => server.start())
    const id = /eml_\w+/.exec(accepted)?.[0]
    const read = yield* Effect.promise(() =>
      fetch(`${server.url}/api/v1/emails/${id}?wait=30`, {
        headers: { authorization: `Bearer ${server.adminKey()}` }
      }).then((response) => response.text())
    )
    assert.include(read, '"status":"sent"')
  })
)
