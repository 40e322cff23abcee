import { assert, describe, it } from "@effect/vitest"
import type { HotReply, HotRoute } from "#src/front/HotRoute.ts"
import { exchange, RawClient, statusOf } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

const maxBodyBytes = 4096

const collect: HotRoute = {
  method: "POST",
  path: "/collect",
  maxBodyBytes,
  headers: ["user-agent"],
  cors: "open",
  handle: (request, body, reply) =>
    reply.send(
      202,
      [
        ["X-Agent", request.header("user-agent")],
        ["X-Undeclared", request.header("x-other")],
        ["X-Query", request.query],
        ["X-Address", request.remoteAddress],
        ["X-Injected", "1\r\nX-Bad: 2"],
        ["Content-Length", "9999"]
      ],
      `${request.method} ${request.path} ${body.length}`
    )
}

const restricted: HotRoute = {
  method: "GET",
  path: "/restricted",
  maxBodyBytes: 0,
  headers: [],
  cors: "configured",
  handle: (_, __, reply) => reply.send(200, [["Content-Type", "text/plain"]], "restricted")
}

const throwing: HotRoute = {
  method: "POST",
  path: "/throw",
  maxBodyBytes,
  headers: [],
  cors: "open",
  handle: () => {
    throw new Error("secret detail")
  }
}

const hot = [collect, restricted, throwing]

describe.each(engines)("hot routes on %s", (engine) => {
  const served = <A>(use: (url: string, port: number) => Promise<A>): Promise<A> =>
    withFront({ engine, hot, corsOrigins: ["https://one.example"] }, ({ url, port }) => use(url, port))

  const ask = (path: string, init?: RequestInit) =>
    served(async (url) => {
      const response = await fetch(url + path, init)
      return { status: response.status, headers: response.headers, text: await response.text() }
    })

  it("hand the handler the body, the query and the declared headers, and nothing else", async () => {
    const { status, headers, text } = await ask("/collect?a=%20b", {
      method: "POST",
      body: "x".repeat(100),
      headers: { "user-agent": "tester", "x-other": "hidden" }
    })
    assert.strictEqual(status, 202)
    assert.strictEqual(text, "POST /collect 100")
    assert.strictEqual(headers.get("x-agent"), "tester")
    assert.strictEqual(headers.get("x-undeclared"), "")
    assert.strictEqual(headers.get("x-query"), "a=%20b")
    assert.strictEqual(headers.get("x-address"), "127.0.0.1")
  })

  it("believe the trusted proxy's own line of X-Forwarded-For, not the client's above it", () =>
    withFront({ engine, hot, trustProxy: 1 }, async ({ port }) => {
      for (const madeUp of ["192.0.2.66", ""]) {
        const text = await exchange(
          port,
          "POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n" +
            `X-Forwarded-For: ${madeUp}\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n`,
          (heard) => heard.endsWith("POST /collect 0")
        )
        assert.include(text.toLowerCase(), "x-address: 198.51.100.1\r\n")
      }
    }))

  it("never write a header that could end the line, or the length that is the front's", async () => {
    const { headers } = await ask("/collect", { method: "POST", body: "x" })
    assert.isNull(headers.get("x-injected"))
    assert.isNull(headers.get("x-bad"))
    assert.strictEqual(headers.get("content-length"), String("POST /collect 1".length))
  })

  it("accept a body of exactly the limit and answer 413 one byte above, in one packet or many", () =>
    served(async (_, port) => {
      for (const size of [maxBodyBytes, maxBodyBytes + 1, 3_000_000]) {
        const client = await RawClient.open(port)
        await client.send(`POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`)
        const body = "a".repeat(size)
        await client.send(body.slice(0, 2000))
        await client.send(body.slice(2000))
        const text = await client.until((heard) => /(\d|\})$/.test(heard) && heard.includes("\r\n\r\n"))
        assert.strictEqual(statusOf(text), size === maxBodyBytes ? 202 : 413)
        if (size > maxBodyBytes) assert.isTrue(text.endsWith('{"error":"Request body too large"}'))
        // The connection is good for another request.
        await client.send("POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok")
        assert.isTrue((await client.until((heard) => heard.endsWith("POST /collect 2"))).length > 0)
        client.destroy()
      }
    }))

  it("count a chunked body as it comes", () =>
    served(async (_, port) => {
      const head = "POST /collect HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      const chunk = `400\r\n${"a".repeat(1024)}\r\n`
      const within = await exchange(port, `${head}${chunk.repeat(4)}0\r\n\r\n`, (heard) =>
        heard.endsWith("4096")
      )
      assert.strictEqual(statusOf(within), 202)
      const above = await exchange(port, `${head}${chunk.repeat(5)}0\r\n\r\n`, (heard) => heard.endsWith("}"))
      assert.strictEqual(statusOf(above), 413)
    }))

  it("refuse a transfer coding other than chunked, whose end is a matter of opinion", () =>
    served(async (_, port) => {
      const request = "POST /collect HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"
      assert.strictEqual(statusOf(await exchange(port, request, (heard) => heard.includes("\r\n\r\n"))), 400)
    }))

  it("answer a handler that throws with 500 and say nothing of it", async () => {
    const { status, text } = await ask("/throw", { method: "POST", body: "x" })
    assert.strictEqual(status, 500)
    assert.strictEqual(text, '{"error":"Internal server error"}')
  })

  it("answer another method with 405 and what is allowed", async () => {
    const { status, headers, text } = await ask("/collect", { method: "PUT", body: "x" })
    assert.strictEqual(status, 405)
    assert.strictEqual(headers.get("allow"), "POST, OPTIONS")
    assert.strictEqual(headers.get("content-type"), "application/json")
    assert.strictEqual(text, '{"error":"Method not allowed"}')
  })

  it("answer variants of the path with a flat 404", async () => {
    for (const path of ["/collect/", "//collect", "/Collect", "/c%6Fllect", "/collect//"]) {
      const text = await served((_, port) =>
        exchange(port, `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx`, (heard) =>
          heard.endsWith("}")
        )
      )
      assert.strictEqual(statusOf(text), 404, path)
      assert.isTrue(text.endsWith('{"error":"Not found"}'), path)
    }
  })

  it("answer HEAD as GET without the body", async () => {
    const { status, headers, text } = await ask("/restricted", { method: "HEAD" })
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-length"), "10")
    assert.strictEqual(text, "")
  })

  it("let any origin read an open route, and answer its preflight", async () => {
    const answer = await ask("/collect", {
      method: "POST",
      body: "x",
      headers: { origin: "https://any.example" }
    })
    assert.strictEqual(answer.headers.get("access-control-allow-origin"), "*")
    const preflight = await served((_, port) =>
      exchange(
        port,
        "OPTIONS /collect HTTP/1.1\r\nHost: x\r\nOrigin: https://any.example\r\nAccess-Control-Request-Method: POST\r\n" +
          "Access-Control-Request-Headers: content-type,x-extra\r\n\r\n",
        (heard) => heard.endsWith("\r\n\r\n")
      )
    )
    assert.match(preflight, /^HTTP\/1\.1 204 /)
    assert.match(preflight, /access-control-allow-origin: \*\r\n/i)
    assert.match(preflight, /access-control-allow-headers: content-type,x-extra\r\n/i)
    assert.match(preflight, /access-control-allow-methods: POST, OPTIONS\r\n/i)
  })

  it("let only the configured origins read a configured route", async () => {
    const allowed = await ask("/restricted", { headers: { origin: "https://one.example" } })
    assert.strictEqual(allowed.headers.get("access-control-allow-origin"), "https://one.example")
    assert.strictEqual(allowed.headers.get("vary"), "Origin")
    assert.include(allowed.headers.get("access-control-expose-headers"), "RateLimit-Remaining")
    const other = await ask("/restricted", { headers: { origin: "https://two.example" } })
    assert.isNull(other.headers.get("access-control-allow-origin"))
    assert.strictEqual(other.status, 200)
  })

  it("may answer later, and know when the client has left", async () => {
    const replies: Array<HotReply> = []
    const arrived = Promise.withResolvers<void>()
    const later: HotRoute = {
      ...collect,
      handle: (_, __, reply) => {
        replies.push(reply)
        arrived.resolve()
      }
    }
    await withFront({ engine, hot: [later] }, async ({ port }) => {
      const client = await RawClient.open(port)
      await client.send("POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
      await arrived.promise
      assert.isFalse(replies[0]?.aborted)
      client.destroy()
      while (replies[0]?.aborted === false) await new Promise((resolve) => setImmediate(resolve))
      replies[0]?.send(202, [])
      const other = await RawClient.open(port)
      await other.send("POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
      while (replies.length < 2) await new Promise((resolve) => setImmediate(resolve))
      replies[1]?.send(202, [], "later")
      assert.strictEqual(statusOf(await other.until((heard) => heard.endsWith("later"))), 202)
      other.destroy()
    })
  })

  it("hold so many bytes of unfinished bodies together, refuse what is above, and have room again", async () => {
    const head = "POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n"
    const limits = { strangersBodiesBytes: 8_000, lingerMillis: 5 }
    await withFront({ engine, hot: [collect], limits }, async ({ port }) => {
      const first = await RawClient.open(port)
      await first.send(head + "x".repeat(3000))
      // Sent again and again, because the server may not have read the first one yet.
      let refused = ""
      while (statusOf(refused) !== 503) {
        const second = await RawClient.open(port)
        await second.send(head + "x".repeat(3000))
        await new Promise((resolve) => setTimeout(resolve, 20))
        refused = second.text
        second.destroy()
      }
      assert.match(refused, /retry-after: 1\r\n/i)
      assert.match(refused, /connection: close\r\n/i)
      // One that leaves gives its room back, and so does one that is done.
      first.destroy()
      for (let round = 0; round < 3; round++) {
        let answered = ""
        while (statusOf(answered) !== 202) {
          const client = await RawClient.open(port)
          await client.send(head)
          await client.send("x".repeat(1000))
          await new Promise((resolve) => setTimeout(resolve, 20))
          await client.send("x".repeat(3000))
          answered = await client.until((heard) => heard.includes("4000") || statusOf(heard) === 503)
          client.destroy()
        }
      }
    })
  })
})
