import { assert, describe, it } from "@effect/vitest"
import type { HotRequest } from "#src/front/HotRoute.ts"
import type { HotHandshake, HotSocket, HotSocketRoute } from "#src/front/HotSocket.ts"
import { exchange, RawClient, statusOf } from "./RawClient.ts"
import { deaf, echoing, type Held, holding, maxFrameBytes } from "./HotSocketRoutes.ts"
import { handshake, SocketClient } from "./SocketClient.ts"
import { engines, withFront } from "./TestFront.ts"

const refusing: HotSocketRoute = echoing({
  path: "/refuse",
  headers: ["authorization"],
  upgrade: (request, client) =>
    client.refuse(
      Number(request.header("authorization")),
      [
        ["Content-Type", "application/json"],
        ["Retry-After", "7"]
      ],
      '{"error":"No"}'
    )
})

const throwing = echoing({
  path: "/throw",
  upgrade: () => {
    throw new Error("secret detail")
  }
})

describe.each(engines)("hot sockets on %s", (engine) => {
  const served = <A>(
    sockets: ReadonlyArray<HotSocketRoute>,
    use: (url: string, port: number) => Promise<A>,
    limits: Parameters<typeof withFront>[0]["limits"] = {}
  ): Promise<A> =>
    withFront({ engine, sockets, limits: { drainDeadlineMillis: 100, ...limits } }, ({ url, port }) =>
      use(url, port)
    )

  /** The answer to a request that stays an HTTP request. */
  const answerTo = (request: string): Promise<string> =>
    served([echoing(), refusing, throwing], (_, port) =>
      exchange(port, request, (heard) => /\r\n\r\n(\{.*\})?$/.test(heard) && statusOf(heard) > 0)
    )

  it("carry text and binary messages", () =>
    served([echoing()], async (url) => {
      const client = await SocketClient.open(`${url}/echo`)
      client.socket.send("hello \u00fc")
      client.socket.send("")
      client.socket.send(Uint8Array.of(0, 1, 255))
      assert.deepStrictEqual(await client.heard(3), ["hello \u00fc", "", "bytes 0 1 255"])
      client.socket.close()
      await client.closed
    }))

  it("keep the order of a flood of small messages", () =>
    served([echoing()], async (url) => {
      const client = await SocketClient.open(`${url}/echo`)
      const sent = Array.from({ length: 5_000 }, (_, index) => `message ${index}`)
      for (const message of sent) client.socket.send(message)
      assert.deepStrictEqual(await client.heard(sent.length), sent)
      client.socket.close()
      await client.closed
    }))

  it("hand the route the declared headers, the query and the client's address", () => {
    const seen: Array<ReadonlyArray<string>> = []
    const route = echoing({
      headers: ["x-one"],
      upgrade: (request, client) => {
        const { method, path, query, remoteAddress } = request
        seen.push([method, path, query, remoteAddress, request.header("x-one"), request.header("x-two")])
        client.refuse(403, [], "")
      }
    })
    return served([route], async (_, port) => {
      const head = handshake("/echo?a=%20b", { "X-One": "1", "X-Two": "2" })
      await exchange(port, head, (heard) => statusOf(heard) === 403)
      assert.deepStrictEqual(seen, [["GET", "/echo", "a=%20b", "127.0.0.1", "1", ""]])
    })
  })

  it("are refused with an ordinary answer and its headers", async () => {
    for (const status of [401, 402, 429]) {
      const text = await answerTo(handshake("/refuse", { Authorization: String(status) }))
      assert.strictEqual(statusOf(text), status)
      assert.match(text, /retry-after: 7\r\n/i)
      assert.isTrue(text.endsWith('{"error":"No"}'))
    }
  })

  it("answer a route that throws with 500 and say nothing of it", async () => {
    const text = await answerTo(handshake("/throw"))
    assert.strictEqual(statusOf(text), 500)
    assert.isTrue(text.endsWith('{"error":"Internal server error"}'))
  })

  it("answer 426 to what is no handshake of version 13, and name what is missing", async () => {
    const plain = "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"
    const heads = [
      plain,
      handshake("/echo", { "Sec-WebSocket-Version": "8" }),
      handshake("/echo", { Upgrade: "h2c" }),
      handshake("/echo", { "Sec-WebSocket-Key": "short" }),
      handshake("/echo", { "Sec-WebSocket-Key": "!".repeat(24) })
    ]
    for (const head of heads) {
      const text = await answerTo(head)
      assert.strictEqual(statusOf(text), 426, head)
      assert.match(text, /upgrade: websocket\r\n/i)
      assert.match(text, /sec-websocket-version: 13\r\n/i)
      assert.isTrue(text.endsWith('{"error":"Upgrade required: this is a WebSocket endpoint"}'))
    }
    assert.strictEqual(statusOf(await answerTo(plain.replace("GET", "HEAD"))), 426)
  })

  it("answer another method with 405 and what is allowed, OPTIONS with 204, and variants of the path with 404", async () => {
    const post = await answerTo("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert.strictEqual(statusOf(post), 405)
    assert.match(post, /allow: GET, HEAD, OPTIONS\r\n/i)
    assert.isTrue(post.endsWith('{"error":"Method not allowed"}'))
    const options = await answerTo("OPTIONS /echo HTTP/1.1\r\nHost: x\r\n\r\n")
    assert.strictEqual(statusOf(options), 204)
    assert.match(options, /allow: GET, HEAD, OPTIONS\r\n/i)
    for (const path of ["/echo/", "//echo", "/Echo", "/e%63ho"]) {
      assert.strictEqual(statusOf(await answerTo(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)), 404, path)
      assert.strictEqual(statusOf(await answerTo(handshake(path))), 404, path)
    }
  })

  it("may be accepted later", () => {
    const later = echoing({
      upgrade: (request, client) => void setImmediate(() => echoing().upgrade(request, client))
    })
    return served([later], async (url) => {
      const client = await SocketClient.open(`${url}/echo`)
      client.socket.send("hello")
      assert.deepStrictEqual(await client.heard(1), ["hello"])
      client.socket.close()
      await client.closed
    })
  })

  it("come to nothing where the client leaves before it is accepted", () => {
    const waiting = Promise.withResolvers<HotHandshake>()
    const aborted = Promise.withResolvers<void>()
    let opened = 0
    const route = echoing({
      upgrade: (_, client) => {
        client.onAbort(() => aborted.resolve())
        waiting.resolve(client)
      }
    })
    return served([route], async (_, port) => {
      const raw = await RawClient.open(port)
      await raw.send(handshake("/echo"))
      const client = await waiting.promise
      assert.isFalse(client.aborted)
      raw.destroy()
      await aborted.promise
      assert.isTrue(client.aborted)
      client.accept(() => {
        opened++
        return deaf
      })
      client.refuse(403, [], "")
      let isToldAtOnce = false
      client.onAbort(() => {
        isToldAtOnce = true
      })
      assert.isTrue(isToldAtOnce)
      assert.strictEqual(opened, 0)
    })
  })

  it("take a message of exactly the limit, and close with 1009 on a longer one", () =>
    served([echoing()], async (url) => {
      const client = await SocketClient.open(`${url}/echo`)
      // Two bytes each as UTF-8.
      client.socket.send("\u00fc".repeat(maxFrameBytes / 2))
      assert.deepStrictEqual(await client.heard(1), ["\u00fc".repeat(maxFrameBytes / 2)])
      client.socket.send("\u00fc".repeat(maxFrameBytes / 2 + 1))
      assert.deepStrictEqual(await client.closed, { code: 1009, reason: "Message too long" })
    }))

  it("end on a message above the double, whatever the client is told", () => {
    const opened = Promise.withResolvers<Held>()
    return served([holding(opened.resolve)], async (url) => {
      const client = await SocketClient.open(`${url}/echo`)
      client.socket.send("x".repeat(2 * maxFrameBytes + 1))
      await client.closed
      const held = await opened.promise
      assert.strictEqual(await held.closed, 1006)
      assert.deepStrictEqual(held.received, [])
    })
  })

  it("tell the listener the client's code, 1005 where it gave none, and 1006 where the client vanished", () => {
    const opened: Array<Held> = []
    return served([holding((held) => opened.push(held))], async (url, port) => {
      const first = await SocketClient.open(`${url}/echo`)
      first.socket.close(4002, "bye")
      assert.strictEqual((await first.closed).code, 4002)
      const second = await SocketClient.open(`${url}/echo`)
      second.socket.close()
      await second.closed
      const third = await RawClient.open(port)
      await third.send(handshake("/echo"))
      await third.until((heard) => statusOf(heard) === 101)
      third.socket.resetAndDestroy()
      assert.deepStrictEqual(await Promise.all(opened.map(({ closed }) => closed)), [4002, 1005, 1006])
    })
  })

  it("tell the client the server's code and reason, and the listener at once", () => {
    const opened = Promise.withResolvers<HotSocket>()
    const codes: Array<number> = []
    const route = echoing({
      upgrade: (_, client) =>
        client.accept((socket) => {
          opened.resolve(socket)
          return { ...deaf, closed: (code) => void codes.push(code) }
        })
    })
    return served([route], async (url) => {
      const client = await SocketClient.open(`${url}/echo`)
      const socket = await opened.promise
      socket.send("last words")
      socket.close(4001, "asked to")
      assert.deepStrictEqual(codes, [4001])
      assert.deepStrictEqual(await client.closed, { code: 4001, reason: "asked to" })
      assert.deepStrictEqual(client.messages, ["last words"])
      // All of it a no-op now.
      socket.close(4003, "again")
      socket.terminate()
      assert.isTrue(socket.send("too late"))
      assert.strictEqual(socket.bufferedBytes, 0)
      assert.deepStrictEqual(codes, [4001])
    })
  })

  it("can be closed while they are being opened, and terminated", () => {
    const codes: Array<number> = []
    const ending = (path: string, end: (socket: HotSocket) => void) =>
      echoing({
        path,
        upgrade: (_, client) =>
          client.accept((socket) => {
            end(socket)
            return { ...deaf, closed: (code) => void codes.push(code) }
          })
      })
    const routes = [
      ending("/close", (socket) => socket.close(4000, "no")),
      ending("/terminate", (socket) => void setImmediate(() => socket.terminate()))
    ]
    return served(routes, async (url) => {
      assert.strictEqual((await (await SocketClient.open(`${url}/close`)).closed).code, 4000)
      assert.strictEqual((await (await SocketClient.open(`${url}/terminate`)).closed).code, 1006)
      assert.deepStrictEqual(codes, [4000, 1006])
    })
  })

  it("close with 1011 where a listener throws, and go on serving others", () => {
    const route = echoing({
      upgrade: (_: HotRequest, client: HotHandshake) =>
        client.accept((socket) => ({
          ...deaf,
          received: (message) => {
            if (message === "throw") throw new Error("secret detail")
            socket.send("fine")
          }
        }))
    })
    return served([route], async (url) => {
      const other = await SocketClient.open(`${url}/echo`)
      const client = await SocketClient.open(`${url}/echo`)
      client.socket.send("throw")
      assert.deepStrictEqual(await client.closed, { code: 1011, reason: "Internal server error" })
      other.socket.send("still there")
      assert.deepStrictEqual(await other.heard(1), ["fine"])
      other.socket.close()
      await other.closed
    })
  })

  it("count into the bound of connections until they are closed", () =>
    served(
      [echoing()],
      async (url) => {
        const first = await SocketClient.open(`${url}/echo`)
        const second = await SocketClient.open(`${url}/echo`)
        const isOpened = (): Promise<boolean> =>
          SocketClient.open(`${url}/echo`).then(
            () => true,
            () => false
          )
        assert.isFalse(await isOpened())
        first.socket.close()
        await first.closed
        // The server may hear of it after its client.
        while (!(await isOpened())) continue
        second.socket.close()
      },
      { maxConnections: 2 }
    ))
})
