import { createHash, randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Socket from "effect/socket/Socket"
import { RawClient, statusOf } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

const kib = 1024

const handshake = (path: string, key: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`

/** Says every message back until the client closes; "close" closes with a code of the server's. */
const echo = Effect.gen(function* () {
  const request = yield* HttpServerRequest
  const socket = yield* request.upgrade
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const reader = yield* socket.reader
      const writer = yield* socket.writer
      const step = Effect.flatMap(reader.pull, (messages) =>
        Effect.forEach(messages, (message) =>
          writer.write(message === "close" ? new Socket.CloseEvent(4001, "asked to") : message)
        )
      )
      return yield* Effect.forever(step)
    })
  ).pipe(Effect.catch(() => Effect.succeed(Response.empty())))
})

const refuse = Response.text("no sockets here", { status: 403 })

const app = Layer.mergeAll(
  HttpRouter.add("GET", "/echo", echo),
  HttpRouter.add("GET", "/late", Effect.delay(echo, "10 millis")),
  HttpRouter.add("GET", "/refuse", refuse)
)

const open = async (url: string): Promise<WebSocket> => {
  const socket = new WebSocket(url.replace("http", "ws"))
  socket.binaryType = "arraybuffer"
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve(), { once: true })
    socket.addEventListener("error", () => reject(new Error("not opened")), { once: true })
  })
  return socket
}

const nextMessage = (socket: WebSocket): Promise<string | ArrayBuffer> =>
  new Promise((resolve) => {
    socket.addEventListener("message", (event) => resolve(event.data), { once: true })
  })

const closeOf = (socket: WebSocket): Promise<{ readonly code: number; readonly reason: string }> =>
  new Promise((resolve) => {
    socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }), { once: true })
  })

describe.each(engines)("WebSockets on %s", (engine) => {
  it("answer the handshake as RFC 6455 says", () =>
    withFront({ engine, app }, async ({ port }) => {
      const client = await RawClient.open(port)
      const key = randomBytes(16).toString("base64")
      await client.send(handshake("/echo", key))
      const text = await client.until((heard) => heard.endsWith("\r\n\r\n"))
      assert.strictEqual(statusOf(text), 101)
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64")
      assert.isTrue(text.toLowerCase().includes(`sec-websocket-accept: ${accept.toLowerCase()}`))
      client.destroy()
    }))

  it("carry text and binary messages both ways", () =>
    withFront({ engine, app }, async ({ url }) => {
      const socket = await open(`${url}/echo`)
      socket.send("hello \u00fc")
      assert.strictEqual(await nextMessage(socket), "hello \u00fc")
      socket.send(Uint8Array.of(0, 1, 255))
      const bytes = await nextMessage(socket)
      assert.deepStrictEqual(bytes instanceof ArrayBuffer && Array.from(new Uint8Array(bytes)), [0, 1, 255])
      socket.close()
      await closeOf(socket)
    }))

  it("may be opened by a handler that had to look something up first", () =>
    withFront({ engine, app }, async ({ url }) => {
      const socket = await open(`${url}/late`)
      socket.send("hello")
      assert.strictEqual(await nextMessage(socket), "hello")
      socket.close()
      await closeOf(socket)
    }))

  it("carry a message of exactly the limit and close on a longer one", () =>
    withFront({ engine, app, limits: { webSocketMaxPayloadBytes: 64 * kib } }, async ({ url }) => {
      const socket = await open(`${url}/echo`)
      const largest = "x".repeat(64 * kib)
      socket.send(largest)
      assert.strictEqual(await nextMessage(socket), largest)
      const closed = closeOf(socket)
      socket.send(`${largest}x`)
      // uWebSockets.js drops the connection (1006 to the client), ws says why (1009).
      assert.strictEqual((await closed).code, engine === "uws" ? 1006 : 1009)
    }))

  it("close with the code and reason that the handler gave", () =>
    withFront({ engine, app }, async ({ url }) => {
      const socket = await open(`${url}/echo`)
      const closed = closeOf(socket)
      socket.send("close")
      assert.deepStrictEqual(await closed, { code: 4001, reason: "asked to" })
    }))

  it("hand the handler the client's close code", () => {
    const seen = Deferred.makeUnsafe<number>()
    const watching = Effect.gen(function* () {
      const request = yield* HttpServerRequest
      const socket = yield* request.upgrade
      yield* Effect.scoped(Effect.flatMap(socket.reader, (reader) => Effect.forever(reader.pull))).pipe(
        Effect.catch((error) =>
          Deferred.succeed(seen, error.reason._tag === "SocketCloseError" ? error.reason.code : -1)
        )
      )
      return Response.empty()
    })
    return withFront({ engine, app: HttpRouter.add("GET", "/watch", watching) }, async ({ url }) => {
      const socket = await open(`${url}/watch`)
      socket.close(4002, "bye")
      assert.strictEqual(await Effect.runPromise(Deferred.await(seen)), 4002)
    })
  })

  it("interrupt the handler when the client vanishes", () => {
    const gone = Deferred.makeUnsafe<string>()
    const opened = Deferred.makeUnsafe<void>()
    const waiting = Effect.gen(function* () {
      const request = yield* HttpServerRequest
      const socket = yield* request.upgrade
      return yield* Effect.scoped(
        Effect.gen(function* () {
          yield* socket.reader
          yield* Deferred.succeed(opened, undefined)
          return yield* Effect.never
        })
      )
    }).pipe(Effect.onInterrupt(() => Deferred.succeed(gone, "interrupted")))
    return withFront({ engine, app: HttpRouter.add("GET", "/wait", waiting) }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send(handshake("/wait", randomBytes(16).toString("base64")))
      await Effect.runPromise(Deferred.await(opened))
      client.socket.resetAndDestroy()
      assert.strictEqual(await Effect.runPromise(Deferred.await(gone)), "interrupted")
    })
  })

  it("are refused with an ordinary answer where the handler asks for none", () =>
    withFront({ engine, app }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send(handshake("/refuse", randomBytes(16).toString("base64")))
      const text = await client.until((heard) => heard.endsWith("no sockets here"))
      assert.strictEqual(statusOf(text), 403)
      client.destroy()
    }))

  it("fail the upgrade of a request that is none", () =>
    withFront({ engine, app }, async ({ url }) => {
      const response = await fetch(`${url}/echo`)
      assert.strictEqual(response.status, 400)
      assert.deepStrictEqual(await response.json(), { error: "Bad request" })
    }))

  it("are told 1001 when the server stops", () =>
    withFront({ engine, app }, async ({ url, stop }) => {
      const socket = await open(`${url}/echo`)
      socket.send("ready")
      await nextMessage(socket)
      const closed = closeOf(socket)
      await stop()
      assert.strictEqual((await closed).code, 1001)
    }))
})

/** A socket at /flood that writes so many messages of `size` bytes, each of its own number, and counts them. */
const flooding = (size: number, count: number, written = { count: 0 }) =>
  HttpRouter.add(
    "GET",
    "/flood",
    Effect.gen(function* () {
      const request = yield* HttpServerRequest
      const socket = yield* request.upgrade
      return yield* Effect.scoped(
        Effect.gen(function* () {
          yield* socket.reader
          const writer = yield* socket.writer
          for (let index = 0; index < count; index++) {
            yield* writer.write(new Uint8Array(size).fill(index))
            written.count++
          }
          return yield* Effect.never
        })
      )
    })
  )

describe("WebSockets on uws", () => {
  it("make a writer wait while the client takes nothing, and lose no message", () => {
    const size = 256 * kib
    const count = 64
    const written = { count: 0 }
    return withFront({ engine: "uws", app: flooding(size, count, written) }, async ({ port }) => {
      const client = await RawClient.open(port)
      client.socket.pause()
      await client.send(handshake("/flood", randomBytes(16).toString("base64")))
      // The kernel's buffers take some megabytes; the writer must stop long before the 16 MiB are over.
      let before = -1
      while (written.count !== before || before <= 0) {
        before = written.count
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      assert.isBelow(written.count, count)
      client.socket.resume()
      assert.strictEqual((await client.untilBytes(count * size)).at(-1), count - 1)
      client.destroy()
    })
  })

  it("deliver what is written once all has left, though the kernel takes a part of it alone", () => {
    // More than the kernel takes of one send.
    const size = 8 * 1024 * kib
    const count = 5
    // The longest: a ping in time would push what is stuck.
    const limits = { webSocketHighWaterBytes: 0, webSocketIdleTimeoutSeconds: 960 }
    return withFront({ engine: "uws", app: flooding(size, count), limits }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send(handshake("/flood", randomBytes(16).toString("base64")))
      assert.strictEqual((await client.untilBytes(count * size)).at(-1), count - 1)
      client.destroy()
    })
  })

  it("close with 1013 when the handler leaves too much unread", () => {
    const lazy = Effect.gen(function* () {
      const request = yield* HttpServerRequest
      const socket = yield* request.upgrade
      return yield* Effect.scoped(Effect.andThen(socket.reader, Effect.never))
    })
    const limits = { webSocketMaxUnreadBytes: 8 * kib }
    return withFront(
      { engine: "uws", app: HttpRouter.add("GET", "/lazy", lazy), limits },
      async ({ url }) => {
        const socket = await open(`${url}/lazy`)
        const closed = closeOf(socket)
        for (let index = 0; index < 9; index++) socket.send("x".repeat(kib))
        assert.strictEqual((await closed).code, 1013)
      }
    )
  })
})
