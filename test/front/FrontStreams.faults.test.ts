import { openAiError } from "#schemas/core/Problem.ts"
import { assert, describe, it } from "@effect/vitest"
import type { HotReply, HotRoute, HotStream } from "#src/front/HotRoute.ts"
import { exchange, RawClient, statusOf } from "./RawClient.ts"
import { type Engine, engines, type TestFrontOptions, withFront } from "./TestFront.ts"

const mib = 1024 * 1024
const ask = "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
const eventStream = [["Content-Type", "text/event-stream"]] as const

/** One client's request to the route under test. */
interface Call {
  readonly reply: HotReply
  aborts: number
}

interface Stage {
  readonly port: number
  readonly stop: () => Promise<void>
  /** the next request that arrives */
  readonly arrival: () => Promise<Call>
}

/** A front with one route, whose requests are answered by the test. */
const staged = (
  engine: Engine,
  use: (stage: Stage) => Promise<void>,
  options: Omit<TestFrontOptions, "engine" | "hot"> = {}
): Promise<void> => {
  const calls: Array<Call> = []
  const waiting: Array<(call: Call) => void> = []
  const route: HotRoute = {
    method: "POST",
    path: "/stream",
    maxBodyBytes: 1024,
    headers: [],
    cors: "open",
    handle: (_, __, reply) => {
      const call: Call = { reply, aborts: 0 }
      reply.onAbort(() => void call.aborts++)
      const next = waiting.shift()
      if (next === undefined) calls.push(call)
      else next(call)
    }
  }
  const arrival = (): Promise<Call> => {
    const call = calls.shift()
    return call === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(call)
  }
  return withFront({ ...options, engine, hot: [route] }, ({ port, stop }) => use({ port, stop, arrival }))
}

/** The body of an answer that has ended, out of its chunks (RFC 9112 7.1). */
const bodyOf = (answer: Buffer): Buffer => {
  let at = answer.indexOf("\r\n\r\n") + 4
  const parts: Array<Buffer> = []
  for (;;) {
    const end = answer.indexOf("\r\n", at)
    const size = Number.parseInt(answer.toString("latin1", at, end), 16)
    assert.isFalse(Number.isNaN(size), "a chunk without a size")
    if (size === 0) return Buffer.concat(parts)
    parts.push(answer.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
}

const hasEnded = (text: string): boolean => text.endsWith("\r\n0\r\n\r\n")

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Writes until the client takes no more: the rest then waits for it. Returns the number of bytes written. */
const fill = async (stream: HotStream): Promise<number> => {
  let bytes = 0
  do {
    while (stream.write(Buffer.alloc(8 * 1024, 97))) {
      bytes += 8 * 1024
      await new Promise((resolve) => setImmediate(resolve))
    }
    bytes += 8 * 1024
    await pause(100)
  } while (stream.bufferedBytes === 0)
  return bytes
}

describe.each(engines)("streamed answers on %s", (engine) => {
  it("arrive piece by piece as they are written, with the front's headers and no length", () =>
    staged(engine, async ({ port, arrival }) => {
      const client = await RawClient.open(port)
      await client.send(ask)
      const { reply } = await arrival()
      const stream = reply.stream(201, [...eventStream, ["X-Bad", "1\r\nX-Worse: 2"]])
      for (const piece of ["data: one\n\n", Buffer.from("data: zwölf\n\n"), "data: 🚦\n\n"]) {
        assert.isTrue(stream.write(piece))
        const heard = Buffer.from(piece).toString("latin1")
        await client.until((text) => text.includes(heard))
      }
      stream.end("data: [DONE]\n\n")
      const text = await client.until(hasEnded)
      assert.strictEqual(statusOf(text), 201)
      assert.match(text, /content-type: text\/event-stream\r\n/i)
      assert.match(text, /transfer-encoding: chunked\r\n/i)
      assert.match(text, /access-control-allow-origin: \*\r\n/i)
      assert.notMatch(text, /content-length|x-worse/i)
      assert.strictEqual(
        bodyOf(client.received).toString("utf8"),
        "data: one\n\ndata: zwölf\n\ndata: 🚦\n\ndata: [DONE]\n\n"
      )
      client.destroy()
    }))

  it("leave a connection that serves the next request, and tell of no abort", () =>
    staged(engine, async ({ port, arrival }) => {
      const client = await RawClient.open(port)
      const calls: Array<Call> = []
      for (let round = 1; round <= 3; round++) {
        await client.send(ask)
        const call = await arrival()
        calls.push(call)
        const stream = call.reply.stream(200, eventStream)
        stream.write(`round ${round}`)
        stream.end()
        stream.end("twice")
        assert.isTrue(stream.write("late"))
        await client.until((text) => hasEnded(text) && text.includes(`round ${round}`))
      }
      assert.notInclude(client.text, "late")
      assert.notInclude(client.text, "twice")
      client.destroy()
      await client.closed()
      assert.deepStrictEqual(
        calls.map(({ aborts }) => aborts),
        [0, 0, 0]
      )
    }))

  it("may be empty, and are not begun twice", () =>
    staged(engine, async ({ port, arrival }) => {
      const client = await RawClient.open(port)
      await client.send(ask)
      const { reply } = await arrival()
      const stream = reply.stream(202, [])
      reply.send(500, [], "second")
      reply.stream(500, []).end("third")
      stream.write("")
      stream.end()
      const text = await client.until((heard) => heard.includes("\r\n\r\n"))
      assert.strictEqual(statusOf(text), 202)
      await client.send(ask)
      const next = await arrival()
      next.reply.send(200, [], "whole")
      next.reply.stream(500, []).end("after")
      const both = await client.until((heard) => heard.endsWith("whole"))
      assert.notMatch(both, /second|third|after/)
      client.destroy()
    }))

  it("tell once when the client leaves, at once whoever asks later, and are no-ops from then on", () =>
    staged(engine, async ({ port, arrival }) => {
      const client = await RawClient.open(port)
      await client.send(ask)
      const call = await arrival()
      const stream = call.reply.stream(200, eventStream)
      let drains = 0
      stream.onDrain(() => void drains++)
      stream.write("data: one\n\n")
      await client.until((text) => text.includes("one"))
      client.destroy()
      await until(() => call.aborts > 0)
      assert.isTrue(call.reply.aborted)
      let later = 0
      call.reply.onAbort(() => void later++)
      assert.strictEqual(later, 1)
      assert.isTrue(stream.write(Buffer.alloc(mib)))
      assert.strictEqual(stream.bufferedBytes, 0)
      stream.end("end")
      call.reply.send(200, [])
      assert.isTrue(call.reply.stream(200, []).write("x"))
      await pause(50)
      assert.strictEqual(call.aborts, 1)
      assert.strictEqual(drains, 0)
    }))

  it("tell when the client leaves before anything was answered", () =>
    staged(engine, async ({ port, arrival }) => {
      const client = await RawClient.open(port)
      await client.send(ask)
      const call = await arrival()
      client.destroy()
      await until(() => call.aborts > 0)
      call.reply.stream(200, eventStream).end("nobody")
      assert.strictEqual(call.aborts, 1)
    }))

  it("tell when the client leaves while the end waits for it", () =>
    staged(engine, async ({ port, arrival }) => {
      const client = await RawClient.open(port)
      await client.send(ask)
      const call = await arrival()
      client.socket.pause()
      const stream = call.reply.stream(200, eventStream)
      await fill(stream)
      stream.end("the end")
      assert.strictEqual(call.aborts, 0)
      client.destroy()
      await until(() => call.aborts > 0)
      assert.strictEqual(stream.bufferedBytes, 0)
    }))

  it("are made to wait by a slow reader, say how much waits, say when it is gone, and lose nothing", () =>
    staged(engine, async ({ port, arrival }) => {
      const client = await RawClient.open(port)
      await client.send(ask)
      const { reply } = await arrival()
      client.socket.pause()
      const stream = reply.stream(200, eventStream)
      let drains = 0
      let sent = await fill(stream)
      stream.onDrain(() => void drains++)
      assert.isAbove(stream.bufferedBytes, 0)
      // The bytes written between the last two answers: the socket's buffer is not ours to count.
      assert.isBelow(stream.bufferedBytes, 256 * 1024)
      const before = stream.bufferedBytes
      const marked = Buffer.alloc(mib, 98)
      assert.isFalse(stream.write(marked))
      sent += mib
      assert.strictEqual(stream.bufferedBytes, before + mib)
      assert.strictEqual(drains, 0)
      client.socket.resume()
      await until(() => drains === 1)
      assert.strictEqual(stream.bufferedBytes, 0)
      client.socket.pause()
      sent += await fill(stream)
      client.socket.resume()
      stream.end("!")
      await client.until(hasEnded)
      const body = bodyOf(client.received)
      assert.strictEqual(body.length, sent + 1)
      assert.strictEqual(body.lastIndexOf(98) - body.indexOf(98) + 1, mib)
      client.destroy()
    }))

  it("take one piece of many megabytes, and keep to its bytes", () =>
    staged(engine, async ({ port, arrival }) => {
      const client = await RawClient.open(port)
      await client.send(ask)
      const { reply } = await arrival()
      const piece = Buffer.from(Uint32Array.from({ length: 4 * mib }, (_, index) => index).buffer)
      const stream = reply.stream(200, [])
      assert.isFalse(stream.write(piece))
      stream.end()
      await client.until(hasEnded)
      assert.isTrue(bodyOf(client.received).equals(piece))
      client.destroy()
    }))

  it("drop a client that takes nothing while something waits for it, and say so", () =>
    staged(
      engine,
      async ({ port, arrival }) => {
        const client = await RawClient.open(port)
        await client.send(ask)
        const call = await arrival()
        client.socket.pause()
        const stream = call.reply.stream(200, eventStream)
        await fill(stream)
        // Pieces that come meanwhile are no sign of life of the client.
        const timer = setInterval(() => stream.write(": keep-alive\n\n"), 20)
        await until(() => call.aborts > 0)
        clearInterval(timer)
        assert.strictEqual(stream.bufferedBytes, 0)
        client.destroy()
      },
      { limits: { stalledStreamMillis: 400, stalledReaderMillis: 60_000 } }
    ))

  it("finish while the server drains, and close their connection", () =>
    staged(engine, async ({ port, stop, arrival }) => {
      const early = await RawClient.open(port)
      await early.send(ask)
      const begun = (await arrival()).reply.stream(200, eventStream)
      begun.write("begun")
      await early.until((text) => text.includes("begun"))
      const late = await RawClient.open(port)
      await late.send(ask)
      const { reply } = await arrival()
      const stopped = stop()
      let isRefused = false
      while (!isRefused) {
        isRefused = await RawClient.open(port).then(
          (client) => (client.destroy(), false),
          () => true
        )
      }
      const stream = reply.stream(200, eventStream)
      stream.write("late")
      await late.until((text) => text.includes("late"))
      stream.end("st")
      begun.end("!")
      await early.closed()
      assert.strictEqual(bodyOf(early.received).toString(), "begun!")
      const text = await late.closed()
      assert.match(text, /connection: close\r\n/i)
      assert.strictEqual(bodyOf(late.received).toString(), "latest")
      await stopped
    }))

  it("that outlast the drain deadline are cut off and told", () =>
    staged(
      engine,
      async ({ port, stop, arrival }) => {
        const client = await RawClient.open(port)
        await client.send(ask)
        const call = await arrival()
        call.reply.stream(200, eventStream).write("begun")
        await client.until((text) => text.includes("begun"))
        await stop()
        await client.closed()
        await until(() => call.aborts === 1)
      },
      { limits: { drainDeadlineMillis: 50 } }
    ))

  it("of a handler that throws after it began are cut off", async () => {
    const route: HotRoute = {
      method: "POST",
      path: "/stream",
      maxBodyBytes: 1024,
      headers: [],
      cors: "open",
      handle: (_, __, reply) => {
        reply.stream(200, eventStream).write("half")
        throw new Error("secret detail")
      }
    }
    await withFront({ engine, hot: [route] }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send(ask)
      assert.isFalse(hasEnded(await client.closed()))
    })
  })
})

// Side by side: they do nothing but wait.
describe.concurrent("a streamed answer", () => {
  it.each(engines)(
    "may be silent for longer than any idle limit, before the first piece, between pieces and behind a stalled reader on %s",
    (engine) =>
      // uWebSockets.js has 10 s built in; only waiting shows that they do not count here.
      staged(engine, async ({ port, arrival }) => {
        const open = async (): Promise<readonly [RawClient, Call]> => {
          const client = await RawClient.open(port)
          await client.send(ask)
          return [client, await arrival()]
        }
        const [first, firstCall] = await open()
        const [between, betweenCall] = await open()
        const [stalled, stalledCall] = await open()
        const [unseen, unseenCall] = await open()
        const betweenStream = betweenCall.reply.stream(200, eventStream)
        betweenStream.write("one")
        stalled.socket.pause()
        const stalledStream = stalledCall.reply.stream(200, eventStream)
        await fill(stalledStream)
        // Small pieces until the native buffer has something, and then not another one that would show it.
        unseen.socket.pause()
        const unseenStream = unseenCall.reply.stream(200, eventStream)
        let unseenBytes = 0
        while (unseenStream.write(Buffer.alloc(1000, 97)) && unseenBytes < 64 * mib) {
          unseenBytes += 1000
          await Promise.resolve()
        }
        await pause(16_000)
        const aborts = [firstCall, betweenCall, stalledCall, unseenCall].map((call) => call.aborts)
        assert.deepStrictEqual(aborts, [0, 0, 0, 0])
        firstCall.reply.stream(200, eventStream).end("first")
        betweenStream.end("two")
        stalled.socket.resume()
        stalledStream.end("three")
        unseen.socket.resume()
        unseenStream.end("four")
        for (const client of [first, between, stalled, unseen]) {
          await client.until(hasEnded)
          client.destroy()
        }
      })
  )
})

describe.each(engines)("failures of the front in the OpenAI form on %s", (engine) => {
  const route: HotRoute = {
    method: "POST",
    path: "/nested",
    maxBodyBytes: 100,
    headers: [],
    cors: "open",
    errors: openAiError,
    handle: () => {
      throw new Error("secret detail")
    }
  }

  const failing = (
    request: string,
    limits: TestFrontOptions["limits"] = {}
  ): Promise<readonly [number, unknown]> =>
    withFront({ engine, hot: [route], limits }, async ({ port }) => {
      const text = await exchange(port, request, (heard) => heard.endsWith("}"))
      return [statusOf(text), JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4))]
    })

  const error = (message: string, type: string, code: string | null) => ({
    error: { message, type, code, param: null }
  })
  const post = (length: number, body: string): string =>
    `POST /nested HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n${body}`

  it("say payload_too_large, internal_error and overloaded as clients of chat completions expect", async () => {
    assert.deepStrictEqual(await failing(post(101, "x".repeat(101))), [
      413,
      error("Request body too large", "invalid_request_error", "payload_too_large")
    ])
    assert.deepStrictEqual(await failing(post(1, "x")), [
      500,
      error("Internal server error", "server_error", "internal_error")
    ])
    assert.deepStrictEqual(
      await failing(post(100, "x".repeat(50)), { strangersBodiesBytes: 10, lingerMillis: 50 }),
      [503, error("Too much is arriving at once; try again", "server_error", "overloaded")]
    )
    assert.deepStrictEqual(await failing("PUT /nested HTTP/1.1\r\nHost: x\r\n\r\n"), [
      405,
      error("Method not allowed", "invalid_request_error", null)
    ])
  })
})
