import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { exchange, RawClient, statusOf } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

const maxHeaderBytes = 16 * 1024

const app = Layer.mergeAll(
  HttpRouter.add("GET", "/text", Response.text("hello")),
  HttpRouter.add(
    "POST",
    "/echo",
    Effect.flatMap(HttpServerRequest, (request) =>
      Effect.map(request.text, (text) => Response.text(`<${text}>`))
    )
  )
)

/** The malformed requests, and the status that each engine answers before it closes the connection. */
const refused = [
  ["no Host", "GET /text HTTP/1.1\r\n\r\n", 400, 400],
  [
    "two lengths that differ",
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    400,
    400
  ],
  ["a length that is no number", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\nabc", 400, 400],
  [
    "a length beside chunks",
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
    400
  ],
  [
    "a coding that is not chunked",
    "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    400,
    400
  ],
  ["a space before the colon", "GET /text HTTP/1.1\r\nHost : x\r\n\r\n", 400, 400],
  ["a control character in a value", "GET /text HTTP/1.1\r\nHost: x\r\nX-A: a\u0001b\r\n\r\n", 400, 400],
  ["no request at all", "\u0016\u0003\u0001\u0002\r\n\r\n", 505, 400],
  // uWebSockets.js answers its parser's errors with pages of its own, and knows no absolute form.
  ["the absolute form", "GET http://x/text HTTP/1.1\r\nHost: x\r\n\r\n", 505, 200],
  ["HTTP/1.0", "GET /text HTTP/1.0\r\nHost: x\r\n\r\n", 505, 200],
  [
    "a header above the limit",
    `GET /text HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(maxHeaderBytes)}\r\n\r\n`,
    431,
    431
  ],
  [
    "a hundred headers",
    `GET /text HTTP/1.1\r\nHost: x\r\n${Array.from({ length: 100 }, (_, index) => `X-${index}: 1\r\n`).join("")}\r\n`,
    431,
    200
  ]
] as const

describe.each(engines)("malformed requests on %s", (engine) => {
  it.each(refused)("are refused: %s", (_, request, uws, node) =>
    withFront({ engine, app, limits: { maxHeaderBytes } }, async ({ port }) => {
      const text = await exchange(port, request, (heard) => heard.includes("\r\n\r\n"))
      assert.strictEqual(statusOf(text), engine === "uws" ? uws : node)
      // The server is none the worse for it.
      const after = await exchange(port, "GET /text HTTP/1.1\r\nHost: x\r\n\r\n", (heard) =>
        heard.endsWith("hello")
      )
      assert.strictEqual(statusOf(after), 200)
    })
  )

  it("may have headers just inside the limit", () =>
    withFront({ engine, app, limits: { maxHeaderBytes } }, async ({ port }) => {
      const request = `GET /text HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(maxHeaderBytes - 200)}\r\n\r\n`
      assert.strictEqual(statusOf(await exchange(port, request, (heard) => heard.endsWith("hello"))), 200)
    }))

  it("may be cut at any byte without harm to others", () =>
    withFront({ engine, app }, async ({ port }) => {
      const request = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
      for (let length = 1; length < request.length; length += 3) {
        const client = await RawClient.open(port)
        await client.send(request.slice(0, length))
        client.destroy()
      }
      const whole = await exchange(port, request, (heard) => heard.endsWith("<body>"))
      assert.strictEqual(statusOf(whole), 200)
    }))

  it("may come byte by byte", () =>
    withFront({ engine, app }, async ({ port }) => {
      const client = await RawClient.open(port)
      for (const byte of "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
        await client.send(byte)
      assert.strictEqual(statusOf(await client.until((heard) => heard.endsWith("<body>"))), 200)
      client.destroy()
    }))

  it("are answered in order when several come in one packet", () =>
    withFront({ engine, app }, async ({ port }) => {
      const client = await RawClient.open(port)
      const get = "GET /text HTTP/1.1\r\nHost: x\r\n\r\n"
      await client.send(get + get.replace("/text", "/nowhere") + get)
      const text = await client.until(
        (heard) => heard.split("HTTP/1.1 ").length === 4 && heard.endsWith("hello")
      )
      assert.deepStrictEqual(
        Array.from(text.matchAll(/HTTP\/1\.1 (\d+)/g), (match) => match[1]),
        ["200", "404", "200"]
      )
      client.destroy()
    }))
})

describe("pipelining behind an answer that takes its time", () => {
  const slow = HttpRouter.add(
    "GET",
    "/slow",
    Effect.delay(Effect.succeed(Response.text("slow")), "20 millis")
  )
  const two = "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2)

  it("is served in order by Node", () =>
    withFront({ engine: "node", app: slow }, async ({ port }) => {
      const text = await exchange(port, two, (heard) => heard.split("slow").length === 3)
      assert.strictEqual(text.split("HTTP/1.1 200").length, 3)
    }))

  it("closes the connection on uWebSockets.js, which never mixes answers up", () =>
    withFront({ engine: "uws", app: slow }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send(two)
      assert.isBelow((await client.closed()).split("HTTP/1.1 200").length, 3)
    }))
})
