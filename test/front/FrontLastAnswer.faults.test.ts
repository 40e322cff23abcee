import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import type { HotRoute } from "#src/front/HotRoute.ts"
import { sneaked } from "./AmbiguousRequests.ts"
import { RawClient } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

const run = promisify(execFile)

const long = "long ".repeat(40_000)

const body = Effect.flatMap(HttpServerRequest, (request) => request.text)

const pieces = (text: string): Stream.Stream<Uint8Array> =>
  Stream.fromIterable(Array.from({ length: 4 }, (_, index) => Buffer.from(`${text}${index}`))).pipe(
    Stream.tap(() => Effect.sleep("1 millis"))
  )

/** One route for each way in which an answer can leave, and one that counts. */
const appWith = (sneaked: () => void) =>
  Layer.mergeAll(
    HttpRouter.add(
      "GET",
      "/sneaked",
      Effect.sync(() => {
        sneaked()
        return Response.text("sneaked")
      })
    ),
    HttpRouter.add(
      "POST",
      "/short",
      Effect.map(body, (text) => Response.text(`${text}3`))
    ),
    HttpRouter.add(
      "POST",
      "/later",
      Effect.delay(
        Effect.map(body, (text) => Response.text(`${text}3`)),
        "20 millis"
      )
    ),
    HttpRouter.add(
      "POST",
      "/long",
      Effect.map(body, (text) => Response.text(`${long}${text}3`))
    ),
    HttpRouter.add(
      "POST",
      "/pieces",
      Effect.map(body, (text) => Response.stream(pieces(text)))
    ),
    HttpRouter.add(
      "POST",
      "/sized",
      Effect.map(body, (text) => Response.stream(pieces(text), { contentLength: 4 * (text.length + 1) }))
    ),
    HttpRouter.add(
      "POST",
      "/single",
      Effect.map(body, () => Response.stream(Stream.succeed(Buffer.from("3")), { contentLength: 1 }))
    ),
    HttpRouter.add("POST", "/nothing", Effect.as(body, Response.empty()))
  )

const hot: ReadonlyArray<HotRoute> = [
  {
    method: "POST",
    path: "/hot",
    maxBodyBytes: 4096,
    headers: [],
    cors: "open",
    handle: (_, bytes, reply) => reply.send(200, [], `${Buffer.from(bytes).toString()}3`)
  },
  {
    method: "POST",
    path: "/hot-nothing",
    maxBodyBytes: 4096,
    headers: [],
    cors: "open",
    handle: (_, __, reply) => reply.send(204, [])
  },
  {
    method: "POST",
    path: "/hot-stream",
    maxBodyBytes: 4096,
    headers: [],
    cors: "open",
    handle: (_, bytes, reply) => {
      const stream = reply.stream(200, [])
      stream.write(Buffer.from(bytes).toString())
      setTimeout(() => stream.end("3"), 5)
    }
  },
  {
    method: "POST",
    path: "/hot-stream-at-once",
    maxBodyBytes: 4096,
    headers: [],
    cors: "open",
    handle: (_, __, reply) => reply.stream(200, []).end("3")
  }
]

const answering = [
  "/short",
  "/later",
  "/long",
  "/pieces",
  "/sized",
  "/single",
  "/hot",
  "/hot-stream",
  "/hot-stream-at-once"
]
const all = [...answering, "/nothing", "/hot-nothing"]

const endsOf = (headers: string): string =>
  `Host: x\r\n${headers}\r\n${headers.includes("chunked") ? "3\r\nabc\r\n0\r\n\r\n" : "abc"}`

const isWhole = (text: string): boolean =>
  text.startsWith("HTTP/1.1 204") ? text.includes("\r\n\r\n") : /3(?:\r\n0\r\n\r\n)?$/.test(text)

// Side by side: uWebSockets.js has a connection wait for seconds.
describe.concurrent.each(engines)("the last answer of a connection on %s", (engine) => {
  const served = (
    use: (url: string, port: number, sneakedCount: () => number) => Promise<void>
  ): Promise<void> => {
    let count = 0
    return withFront({ engine, app: appWith(() => count++), hot }, ({ url, port }) =>
      use(url, port, () => count)
    )
  }

  it.each(all)("comes whole to a chunked request, and nothing behind it is served: %s", (path) =>
    served(async (_, port, sneakedCount) => {
      const client = await RawClient.open(port)
      await client.send(`POST ${path} HTTP/1.1\r\n${endsOf("Transfer-Encoding: chunked\r\n")}`)
      const text = await client.until(isWhole)
      // Node's parser is strict, and its connections go on.
      if (engine === "uws") assert.match(text, /\r\nconnection: close\r\n/i)
      await client.send(sneaked)
      client.socket.end()
      await client.closed()
      if (engine === "uws") assert.strictEqual(sneakedCount(), 0)
    })
  )

  it.each(all)("comes whole to a request that says Connection: close: %s", (path) =>
    served(async (_, port, sneakedCount) => {
      const client = await RawClient.open(port)
      await client.send(`POST ${path} HTTP/1.1\r\n${endsOf("Connection: close\r\nContent-Length: 3\r\n")}`)
      await client.until(isWhole)
      await client.send(sneaked)
      assert.isTrue(isWhole(await client.closed()))
      assert.strictEqual(sneakedCount(), 0)
    })
  )

  it.each(all)("is the first one where a request lies behind it in its packet: %s", (path) =>
    served(async (_, port, sneakedCount) => {
      const client = await RawClient.open(port)
      await client.send(
        `POST ${path} HTTP/1.1\r\n${endsOf("Connection: close\r\nContent-Length: 3\r\n")}${sneaked}`
      )
      await client.closed()
      assert.strictEqual(sneakedCount(), 0)
    })
  )

  it.each(answering)("reaches a client that uploads without a length: %s", (path) =>
    served(async (url) => {
      // The client opens another connection each time.
      for (let count = 0; count < 3; count++) {
        const stream = new ReadableStream<Uint8Array>({
          start: (controller) => {
            controller.enqueue(Buffer.from("a"))
            controller.enqueue(Buffer.from("bc"))
            controller.close()
          }
        })
        const answer = await fetch(url + path, { method: "POST", body: stream, duplex: "half" })
        assert.strictEqual(answer.status, 200)
        assert.isTrue((await answer.text()).endsWith("3"))
      }
    })
  )

  it("reaches curl, which uploads what it is given on its standard input", () =>
    served(async (url) => {
      const asked = run("curl", ["-s", "-X", "POST", "-T", "-", `${url}/short`, `${url}/hot`])
      asked.child.stdin?.end("abc")
      assert.match((await asked).stdout, /^abc33?/)
    }))
})
