import { connect, type Socket } from "node:net"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { until } from "./Eventually.ts"
import { SmtpSink } from "./SmtpSink.ts"

/** The lines of a session, typed by hand: RFC 5321. */
class Session {
  heard = ""
  isClosed = false
  readonly #socket: Socket

  constructor(url: string) {
    this.#socket = connect(Number(new URL(url).port), "127.0.0.1")
    this.#socket.on("data", (chunk) => (this.heard += String(chunk)))
    this.#socket.on("close", () => (this.isClosed = true))
    this.#socket.on("error", (error) => (this.heard += error.message))
  }

  /** Sends a line, or nothing, and answers the code of the reply. */
  async say(line?: string): Promise<number> {
    const before = line === undefined ? 0 : this.heard.length
    if (line !== undefined) this.#socket.write(`${line}\r\n`)
    await until(`a reply to ${line}`, async () =>
      /^\d{3} .*\r\n$/m.test(this.heard.slice(before)) || this.isClosed ? undefined : this.heard
    )
    return Number(/^(\d{3}) /m.exec(this.heard.slice(before))?.[1] ?? 0)
  }

  async all(...lines: ReadonlyArray<string>): Promise<ReadonlyArray<number>> {
    const codes: Array<number> = []
    for (const line of lines) codes.push(await this.say(line))
    return codes
  }

  leave(): void {
    this.#socket.destroy()
  }
}

const envelope = ["MAIL FROM:<a@example.com>", "RCPT TO:<b@example.com>", "DATA"]
const message = "Subject: Grüße\r\n\r\n..dot\r\nend\r\n."

describe("a sink of mail", () => {
  let sink: SmtpSink
  let sessions: Array<Session>
  const session = async (): Promise<Session> => {
    const made = new Session(sink.url)
    sessions.push(made)
    assert.strictEqual(await made.say(), 220)
    assert.strictEqual(await made.say("EHLO client.example.com"), 250)
    return made
  }
  beforeEach(async () => {
    sessions = []
    sink = await SmtpSink.start()
  })
  afterEach(async () => {
    for (const one of sessions) one.leave()
    await sink.close()
  })

  it("takes mails and keeps them as they came", async () => {
    const client = await session()
    const lines = [...envelope.slice(0, 2), "RCPT TO:<c@example.com>", "DATA", message]
    assert.deepStrictEqual(await client.all(...lines), [250, 250, 250, 354, 250])
    assert.deepStrictEqual(sink.mails, [
      {
        from: "a@example.com",
        to: ["b@example.com", "c@example.com"],
        message: "Subject: Grüße\r\n\r\n.dot\r\nend\r\n",
        user: ""
      }
    ])
  })

  it("refuses at the step that was ordered, and takes the next mail", async () => {
    sink.next(
      { at: "mail", code: 421, text: "Busy" },
      { at: "rcpt", code: 550, text: "No such user" },
      { at: "data", code: 451, text: "Try later" }
    )
    const client = await session()
    assert.strictEqual(await client.say(envelope[0]), 421)
    const second = await session()
    assert.deepStrictEqual(await second.all(...envelope.slice(0, 2), "RSET"), [250, 550, 250])
    assert.deepStrictEqual(await second.all(...envelope, message), [250, 250, 354, 451])
    assert.include(second.heard, "550 No such user")
    assert.isEmpty(sink.mails)
    assert.deepStrictEqual(await second.all(...envelope, message), [250, 250, 354, 250])
    assert.lengthOf(sink.mails, 1)
  })

  it("cuts off before its answer, having taken the mail", async () => {
    sink.next("cut")
    const client = await session()
    assert.deepStrictEqual(await client.all(...envelope, message), [250, 250, 354, 0])
    assert.isTrue(client.isClosed)
    assert.lengthOf(sink.mails, 1)
  })

  it("answers late, or never", async () => {
    sink.next({ afterMillis: 100 }, "hang")
    const client = await session()
    const from = performance.now()
    assert.deepStrictEqual(await client.all(...envelope, message), [250, 250, 354, 250])
    assert.isAtLeast(performance.now() - from, 99)
    assert.deepStrictEqual(await client.all(...envelope), [250, 250, 354])
    const replies = client.heard
    const unanswered = client.say(message)
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.strictEqual(client.heard, replies)
    client.leave()
    assert.strictEqual(await unanswered, 0)
    assert.lengthOf(sink.mails, 1)
  })

  it("asks for its account, and for no longer message than it takes", async () => {
    const strict = await SmtpSink.start({ account: { user: "ada", password: "secret" }, maxBytes: 100 })
    const client = new Session(strict.url)
    const plain = (password: string): string =>
      `AUTH PLAIN ${Buffer.from(`\0ada\0${password}`).toString("base64")}`
    try {
      assert.strictEqual(await client.say(), 220)
      assert.deepStrictEqual(await client.all("EHLO x", envelope[0] ?? "", plain("wrong")), [250, 530, 535])
      assert.deepStrictEqual(
        await client.all(plain("secret"), ...envelope, message),
        [235, 250, 250, 354, 250]
      )
      assert.strictEqual(strict.mails[0]?.user, "ada")
      const long = `${"x".repeat(200)}\r\n.`
      assert.deepStrictEqual(await client.all(...envelope, long), [250, 250, 354, 552])
    } finally {
      client.leave()
      await strict.close()
    }
  })
})
