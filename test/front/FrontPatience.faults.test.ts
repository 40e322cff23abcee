import { assert, describe, it } from "@effect/vitest"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Response from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import type { HotRoute } from "#src/front/HotRoute.ts"
import { RawClient } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

const mib = 1024 * 1024
const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/**
 * In a file of its own: uWebSockets.js keeps the poll events of the last socket that was paused for the whole thread, so
 * that in a process that has served other clients before, these pass where they should not.
 */
describe.each(engines)("clients that stop for a while on %s", (engine) => {
  it("upload the rest of a hot body afterwards", async () => {
    const size: HotRoute = {
      method: "POST",
      path: "/size",
      maxBodyBytes: 1024,
      headers: [],
      cors: "open",
      handle: (_, body, reply) => reply.send(200, [], `<${body.length}>`)
    }
    await withFront({ engine, hot: [size] }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send("POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
      await client.send("a".repeat(500))
      // The front looks at slow clients once a second.
      await pause(1500)
      await client.send("a".repeat(500))
      await client.until((text) => text.endsWith("<1000>"))
      client.destroy()
    })
  })

  it("take the rest of a long answer afterwards", async () => {
    const pieces = 256
    const stream = Stream.fromIterable(Array.from({ length: pieces }, () => new Uint8Array(64 * 1024)))
    const app = HttpRouter.add("GET", "/long", Response.stream(stream))
    await withFront({ engine, app, limits: { stalledReaderMillis: 4000 } }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
      client.socket.pause()
      await pause(1500)
      client.socket.resume()
      await client.until((text) => text.endsWith("\r\n0\r\n\r\n"))
      assert.isAtLeast(client.receivedBytes, 16 * mib)
      client.destroy()
    })
  })
})
