import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import type { HotRoute, HotStream } from "#src/front/HotRoute.ts"
import { RawClient } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

/** Three of them are more than uWebSockets.js gathers before it writes, so that it writes while it is given the rest. */
const pieceSizes = [7_000, 14_000]

/** The body of a chunked answer that is read to its end (RFC 9112 7.1). */
const readBody = async (client: RawClient): Promise<Buffer> => {
  let tail = ""
  client.socket.on("data", (chunk) => {
    tail = (tail + chunk.subarray(-7).toString("latin1")).slice(-7)
    if (tail === "\r\n0\r\n\r\n") client.destroy()
  })
  client.socket.resume()
  await client.closed()
  const answer = client.received
  const parts: Array<Buffer> = []
  let at = answer.indexOf("\r\n\r\n") + 4
  for (;;) {
    const data = answer.indexOf("\r\n", at) + 2
    const size = answer.toString("latin1", at, data)
    assert.match(size, /^[0-9a-f]+\r\n$/i)
    const end = data + Number.parseInt(size, 16)
    if (end === data) return Buffer.concat(parts)
    parts.push(answer.subarray(data, end))
    at = end + 2
  }
}

const numbered = (index: number, length: number): Buffer => Buffer.alloc(length, index % 251)

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Sends again and again, until the server has not gone on within 200 ms. */
const sendUntilFull = async (send: () => Promise<void>, isThrough: () => boolean): Promise<void> => {
  let isTaken = true
  while (isTaken) {
    await send()
    const patience = performance.now() + 200
    while (!isThrough() && performance.now() < patience) await turn()
    isTaken = isThrough()
  }
}

describe.each(engines)("where the socket of a client that does not read is full, on %s", (engine) => {
  // The first of the file: uWebSockets.js keeps for its whole thread how a socket is resumed.
  it("a body is read on that was held back while an answer filled the socket", async () => {
    let sentBytes = 0
    let readBytes = 0
    const answer = Effect.map(HttpServerRequest, (request) =>
      Response.stream(
        request.stream.pipe(
          Stream.map((chunk) => {
            readBytes += chunk.length
            return new Uint8Array(chunk.length === 1 ? 12 * 1024 : 0)
          })
        )
      )
    )
    const app = HttpRouter.add("POST", "/", answer)
    await withFront({ engine, app, limits: { bodyHighWaterBytes: 1 } }, async ({ port }) => {
      const client = await RawClient.open(port)
      client.socket.pause()
      await client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
      await sendUntilFull(
        () => {
          sentBytes += 3
          return client.send("1\r\na\r\n2\r\nbc\r\n")
        },
        () => readBytes === sentBytes
      )
      void client.send("0\r\n\r\n")
      assert.strictEqual((await readBody(client)).length, (sentBytes / 3) * 12 * 1024)
    })
  })

  it.each(pieceSizes)("a streamed answer loses none of three pieces of %i bytes in a turn", async (size) => {
    const arrived = Promise.withResolvers<HotStream>()
    const route: HotRoute = {
      method: "GET",
      path: "/stream",
      maxBodyBytes: 0,
      headers: [],
      cors: "open",
      handle: (_, __, reply) => arrived.resolve(reply.stream(200, []))
    }
    await withFront({ engine, hot: [route] }, async ({ port }) => {
      const client = await RawClient.open(port)
      client.socket.pause()
      await client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
      const stream = await arrived.promise
      const sent: Array<Buffer> = []
      let isTaken = true
      while (isTaken) {
        for (let piece = 0; piece < 3; piece++) {
          sent.push(numbered(sent.length, size))
          isTaken = stream.write(sent[sent.length - 1] ?? "")
        }
        await turn()
      }
      stream.end()
      assert.isTrue((await readBody(client)).equals(Buffer.concat(sent)))
    })
  })

  it.each(pieceSizes)("an echo loses none of three chunks of %i bytes in a packet", async (size) => {
    let echoedBytes = 0
    const echo = Effect.map(HttpServerRequest, (request) =>
      Response.stream(
        request.stream.pipe(
          Stream.tap((chunk) =>
            Effect.sync(() => {
              echoedBytes += chunk.length
            })
          )
        )
      )
    )
    await withFront({ engine, app: HttpRouter.add("POST", "/echo", echo) }, async ({ port }) => {
      const client = await RawClient.open(port)
      client.socket.pause()
      await client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
      const sent: Array<Buffer> = []
      const sizeLine = Buffer.from(`${size.toString(16)}\r\n`)
      await sendUntilFull(
        () => {
          const chunks = [0, 1, 2].map((index) => numbered(sent.length + index, size))
          sent.push(...chunks)
          return client.send(Buffer.concat(chunks.flatMap((chunk) => [sizeLine, chunk, Buffer.from("\r\n")])))
        },
        () => echoedBytes === sent.length * size
      )
      void client.send("0\r\n\r\n")
      assert.isTrue((await readBody(client)).equals(Buffer.concat(sent)))
    })
  })

  it.each(["at once", "after a turn"])(
    "an answer that begins %s goes on when its body came whole while the socket was not read",
    async (when) => {
      const huge = Buffer.alloc(16 * 1024 * 1024, 97)
      const answer = Effect.map(HttpServerRequest, (request) =>
        Response.stream(
          request.stream.pipe(
            Stream.tap(() => (when === "at once" ? Effect.void : Effect.yieldNow)),
            Stream.take(1),
            Stream.as(huge)
          )
        )
      )
      const app = HttpRouter.add("POST", "/", answer)
      await withFront({ engine, app, limits: { bodyHighWaterBytes: 1 } }, async ({ port }) => {
        const client = await RawClient.open(port)
        client.socket.pause()
        await client.send(
          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"
        )
        await pause(100)
        assert.strictEqual((await readBody(client)).length, huge.length)
      })
    }
  )

  it("a client is not dropped that reads slowly while its body is held back", async () => {
    const huge = Buffer.alloc(16 * 1024 * 1024, 97)
    const answer = Effect.map(HttpServerRequest, (request) =>
      Response.stream(Stream.concat(Stream.succeed(huge), request.stream))
    )
    const limits = { bodyHighWaterBytes: 1, stalledReaderMillis: 400 }
    await withFront({ engine, app: HttpRouter.add("POST", "/", answer), limits }, async ({ port }) => {
      const client = await RawClient.open(port)
      let reads = 0
      client.socket.on("data", () => {
        if (++reads % 4 > 0) return
        client.socket.pause()
        setTimeout(() => client.socket.resume(), 20)
      })
      await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
      await client.untilBytes(huge.length)
      await client.send("cd")
      await client.until((text) => text.endsWith("\r\n0\r\n\r\n"))
      client.destroy()
    })
  })
})
