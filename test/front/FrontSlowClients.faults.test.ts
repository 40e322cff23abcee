import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { HotRoute } from "#src/front/HotRoute.ts"
import { exchange, RawClient, statusOf } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

const mib = 1024 * 1024
const halfRequest = "GET /text HTTP/1.1\r\nHost: x\r\nX-Half: "

const text = HttpRouter.add("GET", "/text", Response.text("hello"))

const isServed = async (port: number): Promise<boolean> =>
  statusOf(
    await exchange(port, "GET /text HTTP/1.1\r\nHost: x\r\n\r\n", (heard) => heard.endsWith("hello"))
  ) === 200

/** Sends one byte every 20 ms until the server has had enough. */
const trickle = async (client: RawClient): Promise<void> => {
  const timer = setInterval(() => client.socket.write("a"), 20)
  await client.closed()
  clearInterval(timer)
}

describe.each(engines)("slow clients on %s", (engine) => {
  it("make the producer of an answer wait, and are dropped when they take nothing", async () => {
    let produced = 0
    const ended = Deferred.makeUnsafe<void>()
    const endless = Stream.fromEffectRepeat(
      Effect.sync(() => {
        produced += 64 * 1024
        return new Uint8Array(64 * 1024)
      })
    ).pipe(Stream.onExit(() => Deferred.succeed(ended, undefined)))
    const app = Layer.mergeAll(text, HttpRouter.add("GET", "/endless", Response.stream(endless)))
    await withFront({ engine, app, limits: { stalledReaderMillis: 400 } }, async ({ port }) => {
      const client = await RawClient.open(port)
      client.socket.pause()
      await client.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
      assert.isTrue(await isServed(port))
      await Effect.runPromise(Deferred.await(ended))
      // The capacity of the kernel's two buffers, not the length of an endless stream.
      assert.isBelow(produced, 32 * mib)
      client.destroy()
    })
  })

  it("are made to wait while the handler reads slowly, so that a large upload stays out of memory", async () => {
    let read = 0
    let sent = 0
    const gate = Deferred.makeUnsafe<void>()
    const started = Deferred.makeUnsafe<void>()
    const handler = Effect.flatMap(HttpServerRequest, (request) =>
      request.stream.pipe(
        Stream.mapEffect((chunk) =>
          Effect.sync(() => {
            read += chunk.length
          }).pipe(Effect.andThen(Deferred.succeed(started, undefined)), Effect.andThen(Deferred.await(gate)))
        ),
        Stream.runDrain,
        Effect.map(() => Response.text(String(read)))
      )
    )
    const size = 64 * mib
    await withFront({ engine, app: HttpRouter.add("POST", "/slow", handler) }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send(`POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`)
      const piece = Buffer.alloc(mib, 97)
      const sending = (async () => {
        for (; sent < size; sent += mib) await client.send(piece)
      })()
      await Effect.runPromise(Deferred.await(started))
      let before = -1
      while (before !== sent) {
        before = sent
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      assert.isBelow(sent, size / 2)
      Deferred.doneUnsafe(gate, Effect.void)
      await sending
      assert.isTrue((await client.until((heard) => heard.endsWith(String(size)))).endsWith(String(size)))
      client.destroy()
    })
  })

  it("are dropped when their body trickles in, and others are served meanwhile", async () => {
    const never: HotRoute = {
      method: "POST",
      path: "/hot",
      maxBodyBytes: 1024,
      headers: [],
      cors: "open",
      handle: (_, __, reply) => reply.send(202, [])
    }
    const drain = Effect.flatMap(HttpServerRequest, (request) =>
      Effect.as(Stream.runDrain(request.stream), Response.empty())
    )
    const app = Layer.mergeAll(text, HttpRouter.add("POST", "/drain", drain))
    const limits = { slowUploadWindowMillis: 300, minUploadBytesPerSecond: 1000 }
    await withFront({ engine, app, hot: [never], limits }, async ({ port }) => {
      const head = "HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
      for (const path of ["/drain", "/hot"]) {
        const client = await RawClient.open(port)
        await client.send(`POST ${path} ${head}`)
        const dropped = trickle(client)
        assert.isTrue(await isServed(port))
        await dropped
      }
    })
  })

  it("may upload steadily at little more than the least rate", async () => {
    const size = HttpServerRequest.pipe(
      Effect.flatMap((request) => request.text),
      Effect.map((body) => Response.text(`<${body.length}>`))
    )
    const limits = { slowUploadWindowMillis: 200, minUploadBytesPerSecond: 1000 }
    await withFront({ engine, app: HttpRouter.add("POST", "/size", size), limits }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send("POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\n\r\n")
      for (let index = 0; index < 30; index++) {
        await client.send("a".repeat(100))
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      await client.until((heard) => heard.endsWith("<3000>"))
      client.destroy()
    })
  })

  it("are dropped when their headers trickle in, and others are served meanwhile", () =>
    // uWebSockets.js has 10 s built in, in steps of 4 s.
    withFront({ engine, app: text, limits: { headerTimeoutMillis: 1000 } }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send(halfRequest)
      const dropped = trickle(client)
      assert.isTrue(await isServed(port))
      await dropped
    }))

  it("may hold ten thousand connections half open without harm to others", async () => {
    await withFront({ engine, app: text, limits: { maxConnections: 11_000 } }, async ({ port }) => {
      const before = process.memoryUsage.rss()
      const clients = fork(join(import.meta.dirname, "half-open.mjs"), [String(port), "10000", halfRequest])
      const [report] = await once(clients, "message")
      assert.isAbove(Object(report).open, 9_000)
      assert.isTrue(await isServed(port))
      assert.isBelow(process.memoryUsage.rss() - before, 400 * mib)
      clients.send("done")
      await once(clients, "exit")
      assert.isTrue(await isServed(port))
    })
  })

  it("are closed as they arrive above the connection limit", () =>
    withFront({ engine, app: text, limits: { maxConnections: 3 } }, async ({ port }) => {
      const held = await Promise.all([1, 2, 3].map(() => RawClient.open(port)))
      await held[0]?.send("GET /text HTTP/1.1\r\nHost: x\r\n\r\n")
      await held[0]?.until((heard) => heard.endsWith("hello"))
      const refused = await RawClient.open(port)
      assert.strictEqual(await refused.closed(), "")
      for (const client of held) client.destroy()
      while (!(await isServed(port).catch(() => false))) continue
    }))
})
