import { assert, describe, it } from "@effect/vitest"
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest, MaxBodySize } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { exchange, RawClient, statusOf } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

const kib = 1024

const app = Layer.mergeAll(
  HttpRouter.add("GET", "/text", Response.text("hello", { headers: { "x-kind": "greeting" } })),
  HttpRouter.add("GET", "/empty", Response.empty()),
  HttpRouter.add("GET", "/notmodified", Response.empty({ status: 304, headers: { etag: '"1"' } })),
  HttpRouter.add("GET", "/large", Response.uint8Array(new Uint8Array(3_000_000).fill(120))),
  HttpRouter.add(
    "GET",
    "/chunks",
    Response.stream(Stream.make("one ", "two ", "three").pipe(Stream.encodeText))
  ),
  HttpRouter.add(
    "GET",
    "/counted",
    Response.stream(Stream.make("one ", "two ", "three").pipe(Stream.encodeText), { contentLength: 13 })
  ),
  HttpRouter.add(
    "GET",
    "/short",
    Response.stream(Stream.make("one").pipe(Stream.encodeText), { contentLength: 13 })
  ),
  HttpRouter.add(
    "GET",
    "/broken",
    Response.stream(Stream.concat(Stream.encodeText(Stream.make("one")), Stream.fail(new Error("broken"))))
  ),
  HttpRouter.add("GET", "/defect", Effect.die(new Error("secret detail"))),
  HttpRouter.add(
    "GET",
    "/injected",
    Effect.succeed(Response.text("x", { headers: { "x-a": "1\r\nx-b: 2" } }))
  ),
  HttpRouter.add("GET", "/latin", Effect.succeed(Response.text("x", { headers: { "x-a": "caf\u00e9" } }))),
  HttpRouter.add(
    "GET",
    "/cookies",
    Effect.map(HttpServerRequest, (request) => Response.jsonUnsafe(request.cookies))
  ),
  HttpRouter.add(
    "GET",
    "/set",
    Response.setCookieUnsafe(Response.setCookieUnsafe(Response.text("x"), "a", "1"), "b", "2")
  ),
  HttpRouter.add(
    "GET",
    "/what",
    Effect.map(HttpServerRequest, (request) =>
      Response.jsonUnsafe({
        url: request.url,
        method: request.method,
        list: request.headers["x-list"],
        remoteAddress: Option.getOrNull(request.remoteAddress),
        peerAddress: Option.getOrNull(request.peerAddress)
      })
    )
  ),
  HttpRouter.add(
    "GET",
    "/form",
    Effect.sync(() => {
      const form = new FormData()
      form.append("name", "value")
      return Response.formData(form)
    })
  ),
  HttpRouter.add(
    "POST",
    "/json",
    Effect.flatMap(HttpServerRequest, (request) => Effect.map(request.json, Response.jsonUnsafe))
  ),
  HttpRouter.add(
    "POST",
    "/params",
    Effect.flatMap(HttpServerRequest, (request) =>
      Effect.map(request.urlParamsBody, (params) =>
        Response.text(Array.from(params, (pair) => pair.join("=")).join("&"))
      )
    )
  ),
  HttpRouter.add(
    "POST",
    "/size",
    Effect.flatMap(HttpServerRequest, (request) =>
      Effect.map(request.arrayBuffer, (bytes) => Response.text(String(bytes.byteLength)))
    )
  ),
  HttpRouter.add(
    "POST",
    "/size/huge",
    Effect.flatMap(HttpServerRequest, (request) =>
      Effect.map(request.arrayBuffer, (bytes) => Response.text(String(bytes.byteLength)))
    ).pipe(Effect.provideService(MaxBodySize, ByteSize.bytes(8_000_000)))
  ),
  HttpRouter.add(
    "POST",
    "/multipart",
    Effect.flatMap(HttpServerRequest, (request) =>
      Stream.runFold(
        request.multipartStream,
        () => "",
        (seen, part) => `${seen}${part.key}:${part._tag};`
      ).pipe(Effect.map((seen) => Response.text(seen)))
    )
  ),
  HttpRouter.add("POST", "/unread", Response.text("no need")),
  HttpRouter.add("POST", "/later", Effect.delay(Effect.succeed(Response.text("no need")), 30)),
  HttpRouter.add(
    "POST",
    "/later/stream",
    Effect.delay(
      Effect.sync(() => Response.stream(Stream.encodeText(Stream.make("no ", "need")))),
      30
    )
  ),
  HttpRouter.add(
    "POST",
    "/echo",
    Effect.map(HttpServerRequest, (request) => Response.stream(request.stream))
  )
)

const chunked = (size: number): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start: (controller) => {
      for (let sent = 0; sent < size; sent += 16 * kib) {
        controller.enqueue(new Uint8Array(Math.min(16 * kib, size - sent)).fill(97))
      }
      controller.close()
    }
  })

describe.each(engines)("requests on %s", (engine) => {
  const served = <A>(use: (url: string, port: number) => Promise<A>): Promise<A> =>
    withFront({ engine, app, limits: { maxBodyBytes: 64 * kib } }, ({ url, port }) => use(url, port))

  const get = (path: string, init?: RequestInit): Promise<globalThis.Response> =>
    served(async (url) => {
      const response = await fetch(url + path, init)
      return new globalThis.Response(
        response.status === 204 || response.status === 304 ? null : await response.arrayBuffer(),
        {
          status: response.status,
          headers: response.headers
        }
      )
    })

  it("answers with the app's status, headers and body", async () => {
    const response = await get("/text")
    assert.strictEqual(response.status, 200)
    assert.strictEqual(response.headers.get("x-kind"), "greeting")
    assert.strictEqual(response.headers.get("content-length"), "5")
    assert.match(response.headers.get("date") ?? "", / GMT$/)
    assert.strictEqual(await response.text(), "hello")
  })

  it("answers 204 and 304 without a body or a length", async () => {
    await served(async (_, port) => {
      for (const path of ["/empty", "/notmodified"]) {
        const text = await exchange(port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, (heard) =>
          heard.includes("\r\n\r\n")
        )
        assert.match(text, /^HTTP\/1\.1 (204|304) /)
        assert.notMatch(text, /content-length: [1-9]|transfer-encoding/i)
        assert.isTrue(text.endsWith("\r\n\r\n"))
      }
    })
  })

  it("answers HEAD as GET without the body, on a connection that goes on", () =>
    served(async (_, port) => {
      const text = await exchange(port, "HEAD /text HTTP/1.1\r\nHost: x\r\n\r\n", (heard) =>
        heard.includes("\r\n\r\n")
      )
      assert.match(text, /content-length: 5/i)
      const client = await RawClient.open(port)
      await client.send("HEAD /large HTTP/1.1\r\nHost: x\r\n\r\n")
      assert.match(await client.until((heard) => heard.includes("\r\n\r\n")), /content-length: 3000000\r\n/i)
      if (/connection: close/i.test(client.text)) return client.destroy()
      await client.send("GET /text HTTP/1.1\r\nHost: x\r\n\r\n")
      assert.isTrue((await client.until((heard) => heard.endsWith("hello"))).endsWith("\r\n\r\nhello"))
      client.destroy()
    }))

  it("sends a body of three megabytes whole", async () => {
    const body = new Uint8Array(await (await get("/large")).arrayBuffer())
    assert.strictEqual(body.length, 3_000_000)
    assert.isTrue(body.every((byte) => byte === 120))
  })

  it("streams chunked where the length is unknown and counted where it is known", async () => {
    const unknown = await get("/chunks")
    assert.strictEqual(await unknown.text(), "one two three")
    assert.isNull(unknown.headers.get("content-length"))
    const known = await get("/counted")
    assert.strictEqual(await known.text(), "one two three")
    assert.strictEqual(known.headers.get("content-length"), "13")
  })

  it("cuts off an answer that breaks or ends too early, so that it cannot pass for a whole one", async () => {
    for (const path of ["/broken", "/short"]) {
      const outcome = await get(path).then(
        () => "whole",
        () => "cut off"
      )
      assert.strictEqual(outcome, "cut off", path)
    }
  })

  it("answers a defect with 500 and says nothing of it", async () => {
    const response = await get("/defect")
    assert.strictEqual(response.status, 500)
    assert.deepStrictEqual(await response.json(), { error: "Internal server error" })
  })

  it("never writes a header value that could end the line", async () => {
    const response = await get("/injected")
    assert.strictEqual(response.status, 500)
    assert.isNull(response.headers.get("x-b"))
    assert.isNull(response.headers.get("x-a"))
    // Node sends the head as UTF-8 when the body is a string.
    const latin = engine === "uws" ? "caf\u00e9" : "caf\u00c3\u00a9"
    assert.strictEqual((await get("/latin")).headers.get("x-a"), latin)
  })

  it("answers an unknown path with flat JSON", async () => {
    const response = await get("/nowhere")
    assert.strictEqual(response.status, 404)
    assert.strictEqual(response.headers.get("content-type"), "application/json")
    assert.deepStrictEqual(await response.json(), { error: "Not found" })
  })

  it("reads cookies and writes several of them", async () => {
    const read = await get("/cookies", { headers: { cookie: "a=1; b=two" } })
    assert.deepStrictEqual(await read.json(), { a: "1", b: "two" })
    assert.deepStrictEqual((await get("/set")).headers.getSetCookie(), ["a=1", "b=2"])
  })

  it("keeps the query, joins repeated headers and knows the peer", () =>
    served(async (_, port) => {
      const text = await exchange(
        port,
        "GET /what?a=%20b&c HTTP/1.1\r\nHost: x\r\nX-List: one\r\nX-List: two\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n",
        (heard) => heard.endsWith("}")
      )
      assert.deepStrictEqual(JSON.parse(text.slice(text.indexOf("{"))), {
        url: "/what?a=%20b&c",
        method: "GET",
        list: "one, two",
        remoteAddress: "127.0.0.1",
        peerAddress: "127.0.0.1"
      })
    }))

  it("takes the client's address from trusted proxies only", () =>
    withFront({ engine, app, trustProxy: ["127.0.0.0/8", "10.0.0.0/8"] }, async ({ url }) => {
      const response = await fetch(`${url}/what`, {
        headers: { "x-forwarded-for": "6.6.6.6, 198.51.100.1, 10.1.1.1" }
      })
      const seen = Object(await response.json())
      assert.strictEqual(seen.remoteAddress, "198.51.100.1")
      assert.strictEqual(seen.peerAddress, "127.0.0.1")
    }))

  it("sends FormData with its boundary", async () => {
    const form = await (await get("/form")).formData()
    assert.strictEqual(form.get("name"), "value")
  })

  it("reads JSON, URL parameters and multipart forms", async () => {
    const json = await get("/json", { method: "POST", body: '\ufeff{"a":[1,2]}' })
    assert.deepStrictEqual(await json.json(), { a: [1, 2] })
    const params = await get("/params", {
      method: "POST",
      body: new URLSearchParams({ a: "1", b: "\u00fc" })
    })
    assert.strictEqual(await params.text(), "a=1&b=\u00fc")
    const form = new FormData()
    form.append("field", "value")
    form.append("file", new Blob(["content"]), "name.txt")
    const parts = await get("/multipart", { method: "POST", body: form })
    assert.strictEqual(await parts.text(), "field:Field;file:File;")
  })

  it("refuses JSON that is none with a flat 400", async () => {
    const response = await get("/json", { method: "POST", body: "{" })
    assert.strictEqual(response.status, 400)
    assert.deepStrictEqual(await response.json(), { error: "Bad request" })
  })

  it("accepts a body of exactly the limit and answers 413 one byte above, declared or chunked", async () => {
    const limit = 64 * kib
    const post = async (body: NonNullable<RequestInit["body"]>): Promise<ReadonlyArray<number | string>> => {
      const response = await get("/size", { method: "POST", body, duplex: "half" } as RequestInit)
      return [response.status, await response.text()]
    }
    assert.deepStrictEqual(await post(new Uint8Array(limit)), [200, String(limit)])
    assert.deepStrictEqual(await post(chunked(limit)), [200, String(limit)])
    const tooLarge = [413, '{"error":"Request body too large"}']
    assert.deepStrictEqual(await post(new Uint8Array(limit + 1)), tooLarge)
    assert.deepStrictEqual(await post(chunked(limit + 1)), tooLarge)
  })

  it("lets a route have a body limit of its own", async () => {
    const response = await get("/size/huge", { method: "POST", body: new Uint8Array(7_999_999) })
    assert.strictEqual(await response.text(), "7999999")
  })

  it("answers a request whose body nobody reads, and the next one on the connection", () =>
    served(async (_, port) => {
      const client = await RawClient.open(port)
      await client.send(
        `POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n${"a".repeat(100_000)}`
      )
      await client.send("a".repeat(100_000))
      await client.until((heard) => heard.endsWith("no need"))
      await client.send("GET /text HTTP/1.1\r\nHost: x\r\n\r\n")
      assert.isTrue((await client.until((heard) => heard.endsWith("hello"))).endsWith("hello"))
      client.destroy()
    }))

  it("does so too where the body was whole before its answer, and more than is held", () =>
    served(async (_, port) => {
      for (const path of ["/later", "/later/stream"]) {
        for (const size of [600_000, 900_000, 1_200_000, 2_000_000]) {
          const client = await RawClient.open(port)
          const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`
          void client.send(head + "a".repeat(size))
          await client.until((heard) => /no [^]*need/.test(heard))
          await client.send("GET /text HTTP/1.1\r\nHost: x\r\n\r\n")
          const next = client.until((heard) => heard.endsWith("hello"))
          // Node's server does not read such a body, and may end the connection behind the answer.
          await (engine === "node" ? next.catch(() => assert.isTrue(client.isClosed)) : next)
          client.destroy()
        }
      }
    }))

  it("streams an upload of 32 MiB back while it comes", () =>
    served(async (url) => {
      const size = 32 * kib * kib
      const response = await fetch(`${url}/echo`, {
        method: "POST",
        body: chunked(size),
        duplex: "half"
      } as RequestInit)
      let received = 0
      for await (const chunk of response.body ?? []) received += Object(chunk).length
      assert.strictEqual(received, size)
    }))

  it("answers `Expect: 100-continue` before the body is sent", () =>
    served(async (_, port) => {
      const client = await RawClient.open(port)
      await client.send("POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
      await client.until((heard) => heard.startsWith("HTTP/1.1 100 Continue\r\n\r\n"))
      await client.send("abc")
      assert.strictEqual(
        statusOf((await client.until((heard) => heard.endsWith("\r\n\r\n3"))).slice(20)),
        200
      )
      client.destroy()
    }))
})
