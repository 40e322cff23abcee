import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setImmediate as turn, setTimeout as pause } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Response from "effect/http/HttpServerResponse"
import type { RawBody, RawReply, RawRoute } from "#src/front/RawRoute.ts"
import { exchange, RawClient, statusOf } from "./RawClient.ts"
import { chunkedHead, drained, head, pattern, sha256, staged } from "./RawStage.ts"
import { engines, withFront } from "./TestFront.ts"

const mib = 1024 * 1024
const letters = "abcdefghijklmnopqrstuvwxyz"

/** The same body in its two forms. */
const requests = {
  "of a known length": head(letters.length) + letters,
  "in chunks": `${chunkedHead}5\r\n${letters.slice(0, 5)}\r\n15\r\n${letters.slice(5)}\r\n0\r\n\r\n`
}

const textApp = HttpRouter.add("GET", "/text", Response.text("hello"))

const isServed = async (port: number): Promise<boolean> =>
  statusOf(
    await exchange(port, "GET /text HTTP/1.1\r\nHost: x\r\n\r\n", (heard) => heard.endsWith("hello"))
  ) === 200

describe.each(engines)("bodies of slow and bad clients on %s", (engine) => {
  describe.each(Object.entries(requests))("%s", (_, request) => {
    it("come whole in two packets, wherever they are cut", () =>
      staged(engine, async ({ port }, arrival) => {
        for (let at = 1; at < request.length; at++) {
          const client = await RawClient.open(port)
          await client.send(request.slice(0, at))
          // Both ends are in this process: the first packet has been read by then.
          await turn()
          await turn()
          await client.send(request.slice(at))
          const { body, reply } = await arrival()
          const [bytes, end] = await drained(body)
          assert.deepStrictEqual([bytes.toString(), end], [letters, "complete"], `cut at ${at}`)
          reply.send(200, [], "whole")
          await client.until((text) => text.endsWith("whole"))
          client.destroy()
        }
      }))

    it("are gone where the connection ends amid them, at whatever byte, and never pass for whole ones", async () => {
      const ends: Array<Promise<void>> = []
      const seen = async (body: RawBody, reply: RawReply): Promise<void> => {
        const [bytes, end] = await drained(body)
        assert.isTrue(letters.startsWith(bytes.toString()), bytes.toString())
        // The last bytes of the chunked form say nothing of the body.
        if (end === "complete") assert.strictEqual(bytes.toString(), letters)
        else assert.strictEqual(end, "gone")
        reply.send(200, [], "seen")
      }
      const route: RawRoute = {
        methods: ["POST"],
        path: "/up/*",
        cors: "open",
        maxBodyBytes: 1000,
        handle: (_request, body, reply) => void ends.push(seen(body, reply))
      }
      await withFront({ engine, raw: [route] }, async ({ port, stop }) => {
        for (let at = 1; at < request.length; at++) {
          for (const leave of ["end", "destroy"] as const) {
            const client = await RawClient.open(port)
            await client.send(request.slice(0, at))
            await turn()
            await turn()
            client.socket[leave]()
            await client.closed()
          }
        }
        // Every head that had come led to a handler, which has heard of its end: nothing is in flight any more.
        await stop()
        await Promise.all(ends)
        const headLength = request.indexOf("\r\n\r\n") + 4
        assert.strictEqual(ends.length, 2 * (request.length - headLength))
      })
    })
  })

  it("make the client wait while nobody pulls, and go on when somebody does", () =>
    staged(engine, async ({ port }, arrival) => {
      const client = await RawClient.open(port)
      const bytes = pattern(24 * mib)
      let isSent = false
      client.socket.write(Buffer.concat([Buffer.from(head(bytes.length)), bytes]), () => {
        isSent = true
      })
      const { body, reply } = await arrival()
      const before = process.memoryUsage().arrayBuffers
      await pause(300)
      assert.isFalse(isSent)
      // The client's own bytes are in this process too, but have been there before.
      assert.isBelow(process.memoryUsage().arrayBuffers - before, 4 * mib)
      const first = await body.pull()
      assert.notStrictEqual(typeof first, "string")
      const firstBytes = typeof first === "string" ? Buffer.alloc(0) : Buffer.from(first)
      await pause(100)
      const [rest, end] = await drained(body)
      assert.strictEqual(end, "complete")
      assert.strictEqual(sha256(Buffer.concat([firstBytes, rest])), sha256(bytes))
      reply.send(200, [], "stored")
      await client.until((text) => text.endsWith("stored"))
      client.destroy()
    }))

  it("that come too slowly end so, but not while nobody pulls", () =>
    staged(
      engine,
      async ({ port }, arrival) => {
        const client = await RawClient.open(port)
        await client.send(`${head(100_000)}some`)
        const { body, reply } = await arrival()
        await pause(500)
        assert.isFalse(reply.aborted)
        assert.strictEqual(Buffer.from(await body.pull()).toString(), "some")
        assert.strictEqual(await body.pull(), "slow")
        reply.send(408, [], "too slow")
        const text = await client.closed()
        assert.strictEqual(statusOf(text), 408)
        assert.isTrue(text.endsWith("too slow"))
      },
      { limits: { slowUploadWindowMillis: 150, minUploadBytesPerSecond: 10_000 } }
    ))

  it("that go on behind their length are cut there, and the rest reaches no handler", () =>
    staged(engine, async ({ port }, arrival) => {
      const client = await RawClient.open(port)
      await client.send(`${head(3)}${letters}\r\n\r\n`)
      const { body, reply } = await arrival()
      const [bytes, end] = await drained(body)
      assert.deepStrictEqual([bytes.toString(), end], ["abc", "complete"])
      reply.send(200, [], "three")
      await turn()
      client.socket.end()
      const text = await client.closed()
      // Node's parser says so at once where a request has no good head.
      if (engine === "node" && !text.includes("three")) return assert.strictEqual(statusOf(text), 400)
      const [first = "", after = ""] = text.split("three")
      assert.strictEqual(statusOf(first), 200)
      assert.isTrue(after === "" || after.startsWith("HTTP/1.1 400 "), after)
    }))

  it("that trickle in end as slow, whatever has come, and others are served meanwhile", () =>
    staged(
      engine,
      async ({ port }, arrival) => {
        const client = await RawClient.open(port)
        await client.send(head(100_000))
        const timer = setInterval(() => client.socket.write("a"), 20)
        const { body, reply } = await arrival()
        const pulled = drained(body)
        assert.isTrue(await isServed(port))
        const [bytes, end] = await pulled
        clearInterval(timer)
        assert.strictEqual(end, "slow")
        assert.match(bytes.toString(), /^a+$/)
        reply.send(408, [], "too slow")
        assert.strictEqual(statusOf(await client.closed()), 408)
      },
      { app: textApp, limits: { slowUploadWindowMillis: 300, minUploadBytesPerSecond: 1000 } }
    ))

  it("that stall behind an answer get it with the end of their connection, or its end alone", () =>
    staged(
      engine,
      async ({ port }, arrival) => {
        const refused = await RawClient.open(port)
        await refused.send(`${head(100)}some`)
        const { reply } = await arrival()
        reply.send(401, [], "no key")
        const text = await refused.closed()
        assert.strictEqual(statusOf(text), 401)
        assert.isTrue(text.endsWith("no key"))
        const streamed = await RawClient.open(port)
        await streamed.send(`${head(100)}some`)
        const second = await arrival()
        second.reply.stream(200, []).end("never sent")
        assert.strictEqual(await streamed.closed(), "")
      },
      { limits: { lingerMillis: 300 } }
    ))

  it("may be ten thousand that are half there, without harm to others", async () => {
    let begun = 0
    const ends = { complete: 0, gone: 0, slow: 0, tooLong: 0 }
    const route: RawRoute = {
      methods: ["POST"],
      path: "/up/*",
      cors: "open",
      maxBodyBytes: mib,
      handle: async (_request, body, reply) => {
        begun++
        const [bytes, end] = await drained(body)
        assert.strictEqual(bytes.toString(), "half")
        ends[end]++
        reply.send(200, [])
      }
    }
    const limits = { maxConnections: 11_000, slowUploadWindowMillis: 300_000 }
    await withFront({ engine, app: textApp, raw: [route], limits }, async ({ port }) => {
      const before = process.memoryUsage.rss()
      const file = join(import.meta.dirname, "half-open.mjs")
      const clients = fork(file, [String(port), "10000", `${head(100)}half`])
      const [report] = await once(clients, "message")
      assert.isAbove(Object(report).open, 9_000)
      while (begun < Object(report).open) await pause(20)
      assert.isTrue(await isServed(port))
      assert.isBelow(process.memoryUsage.rss() - before, 400 * mib)
      clients.send("done")
      await once(clients, "exit")
      while (ends.gone < begun) await pause(20)
      assert.deepStrictEqual(ends, { complete: 0, gone: begun, slow: 0, tooLong: 0 })
      assert.isTrue(await isServed(port))
    })
  })
})
