import { assert, describe, it } from "@effect/vitest"
import { Outbox, type OutboxLimits } from "#streams/agents/Outbox.ts"

const limits: OutboxLimits = { ringBytes: 10_000, coalesceBytes: 1_000, slowBytes: 5_000 }

/** A client that takes a set number of frames. */
class Client {
  readonly frames: Array<Readonly<Record<string, unknown>>> = []
  bufferedBytes = 0
  closedWith: number | undefined

  send(text: string): boolean {
    this.frames.push(JSON.parse(text))
    return this.bufferedBytes === 0
  }

  close(code: number): void {
    this.closedWith = code
  }

  get said(): ReadonlyArray<unknown> {
    return this.frames.map(({ delta, kind, type }) => delta ?? kind ?? type)
  }
}

const open = (reserved = 1_000) => {
  const outbox = new Outbox(0, reserved, limits)
  const client = new Client()
  outbox.attach(client, 0)
  return { outbox, client }
}

const event = (kind: string) => ({ type: "event", kind })
const say = (outbox: Outbox, text: string, messageId = "m"): void =>
  outbox.delta("p", "text_delta", messageId, 0, text)

describe("The frames of a session on their way out", () => {
  it("are numbered from 1 without holes", () => {
    const { client, outbox } = open()
    for (const kind of ["a", "b", "c"]) outbox.say(event(kind))
    assert.deepStrictEqual(
      client.frames.map(({ seq }) => seq),
      [1, 2, 3]
    )
  })

  it("wait for the step that they tell of, and those behind them wait too", () => {
    const { client, outbox } = open()
    const seq = outbox.announce(event("message_end"))
    outbox.say(event("turn_end"))
    say(outbox, "word")
    assert.deepStrictEqual(client.said, [])
    outbox.commit(seq, 1_000)
    assert.deepStrictEqual(client.said, ["message_end", "turn_end", "word"])
  })

  it("wait for numbers that are reserved, deltas as one", () => {
    const { client, outbox } = open(1)
    for (const kind of ["a", "b"]) outbox.say(event(kind))
    say(outbox, "one ")
    say(outbox, "two")
    assert.deepStrictEqual(client.said, ["a"])
    outbox.commit(0, 100)
    assert.deepStrictEqual(client.said, ["a", "b", "one two"])
  })

  it("gather deltas for a client that does not keep up, and keep their order with other frames", () => {
    const { client, outbox } = open()
    say(outbox, "1")
    client.bufferedBytes = 100
    for (const text of ["2", "3", "4"]) say(outbox, text)
    outbox.say(event("tool_start"))
    say(outbox, "5", "n")
    client.bufferedBytes = 0
    outbox.drained()
    assert.deepStrictEqual(client.said, ["1", "234", "tool_start", "5"])
  })

  it("send what was gathered in large pieces while little waits, and nothing while much does", () => {
    const { client, outbox } = open()
    client.bufferedBytes = 500
    say(outbox, "x".repeat(9_000))
    assert.strictEqual(client.frames.length, 1)
    client.bufferedBytes = 2_000
    say(outbox, "y".repeat(9_000))
    assert.strictEqual(client.frames.length, 1)
  })

  it("are no more sent to a client that is too far behind", () => {
    const { client, outbox } = open()
    client.bufferedBytes = 5_001
    outbox.say(event("a"))
    assert.strictEqual(client.closedWith, 4013)
  })

  it("are replayed once to who comes back, of finished messages only the end", () => {
    const { client, outbox } = open()
    outbox.say(event("turn_start"))
    for (const text of ["a", "b"]) say(outbox, text)
    const seq = outbox.announce(event("message_end"), "m")
    outbox.commit(seq, 1_000)
    say(outbox, "c", "n")
    outbox.request({ type: "tool.request" })
    outbox.detach()
    say(outbox, "d", "n")
    const again = new Client()
    outbox.attach(again, 1)
    assert.deepStrictEqual(again.said, ["message_end", "c"])
    outbox.drained()
    assert.deepStrictEqual(again.said, ["message_end", "c", "d"])
    assert.deepStrictEqual(client.said.slice(0, 4), ["turn_start", "a", "b", "message_end"])
  })

  it("are forgotten where their message is tried again", () => {
    const { outbox } = open()
    say(outbox, "half an answer")
    outbox.forget("m")
    const again = new Client()
    outbox.attach(again, 0)
    assert.deepStrictEqual(again.said, [])
  })

  it("are let go of once the client has them, or there are too many, and it is known up to where", () => {
    const { outbox } = open()
    for (let index = 0; index < 10; index++) outbox.say(event("x"))
    outbox.acknowledge(4)
    assert.strictEqual(outbox.floor, 4)
    for (let index = 0; index < 500; index++) outbox.say(event("y".repeat(90)))
    assert.isAbove(outbox.floor, 300)
    const again = new Client()
    outbox.attach(again, 0)
    assert.strictEqual(again.frames[0]?.["seq"], outbox.floor + 1)
  })
})
