import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { HeaderBlock } from "#src/front/HeaderBlock.ts"
import type { HotRoute } from "#src/front/HotRoute.ts"
import * as RawPaths from "#src/front/RawPaths.ts"
import type { RawRoute } from "#src/front/RawRoute.ts"
import { exchange, RawClient, statusOf } from "./RawClient.ts"
import { engines, withFront } from "./TestFront.ts"

const json = (value: unknown): readonly [string, string] => ["X-Seen", JSON.stringify(value)]

/** Answers with what it was shown. */
const echo = (methods: RawRoute["methods"], path: string, more: Partial<RawRoute> = {}): RawRoute => ({
  methods,
  path,
  cors: "open",
  maxBodyBytes: 4096,
  handle: (request, _, reply) =>
    reply.send(
      200,
      [
        json({ path: request.path, params: request.params, query: request.query }),
        ["X-Headers", JSON.stringify(request.headers)],
        ["X-Address", request.remoteAddress],
        ["X-Route", path],
        ["X-Injected", "1\r\nX-Bad: 2"],
        ["Content-Length", "9999"]
      ],
      `${request.method} ${request.header("x-twice")}`
    ),
  ...more
})

const throwing = (path: string, handle: RawRoute["handle"]): RawRoute =>
  echo(["GET", "POST"], path, { handle })

const block = new HeaderBlock([
  ["X-Injected", "1\r\nX-Bad: 2"],
  ["X-First", "f\u00fcr"],
  ["Content-Length", "9999"],
  ["X-Last", ""],
  ["X Bad", "3"]
])

const raw = [
  echo(["GET", "DELETE"], "/direct/:token", { cors: "configured" }),
  echo("*", "/s3/*"),
  echo(["PUT"], "/s3/:bucket/acl"),
  echo(["POST"], "/exact"),
  echo(["GET"], "/hot/:any"),
  echo(["POST"], "/shared", { isShared: true }),
  echo(["GET"], "/blocks", {
    cors: "configured",
    handle: (_, __, reply) => reply.send(200, [["X-Own", "1"], block, ["X-Name", "b\u00e4r"], block], "told")
  }),
  throwing("/throw", () => {
    throw new Error("secret detail")
  }),
  throwing("/throw-later", async () => {
    await new Promise((resolve) => setImmediate(resolve))
    throw new Error("secret detail")
  })
]

const hot: HotRoute = {
  method: "POST",
  path: "/hot/one",
  maxBodyBytes: 10,
  headers: [],
  cors: "open",
  handle: (_, __, reply) => reply.send(202, [], "hot")
}

const ordinary = Effect.succeed(HttpServerResponse.text("ordinary"))
const app = Layer.merge(
  HttpRouter.add("GET", "/ordinary", ordinary),
  HttpRouter.addAll([
    HttpRouter.route("GET", "/shared", ordinary),
    HttpRouter.route("OPTIONS", "/shared", ordinary)
  ])
)

const request = (head: string, body = ""): string =>
  `${head} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`

const hasHead = (text: string): boolean => text.includes("\r\n\r\n")

describe("paths of raw routes", () => {
  const find = RawPaths.make([
    echo(["GET"], "/a/*"),
    echo(["GET"], "/a/:one"),
    echo(["GET"], "/a/b"),
    echo(["PUT"], "/a/:one/c"),
    echo(["PUT"], "/p.q/:one-:two")
  ])
  const found = (path: string) => {
    const match = find(path)
    return match === undefined
      ? undefined
      : [match.there.find("GET")?.path ?? match.there.find("PUT")?.path, match.params]
  }

  it("go from the particular to the general", () => {
    assert.deepStrictEqual(found("/a/b"), ["/a/b", {}])
    assert.deepStrictEqual(found("/a/x"), ["/a/:one", { one: "x" }])
    assert.deepStrictEqual(found("/a/x/c"), ["/a/:one/c", { one: "x" }])
    assert.deepStrictEqual(found("/a/x/d"), ["/a/*", { "*": "x/d" }])
    assert.deepStrictEqual(found("/a/"), ["/a/*", { "*": "" }])
    assert.deepStrictEqual(found("/a//c"), ["/a/*", { "*": "/c" }])
    assert.deepStrictEqual(found("/p.q/1-2"), ["/p.q/:one-:two", { one: "1", two: "2" }])
    for (const path of ["/a", "/A/b", "/p_q/1-2", "/p.q/1", "/"]) assert.isUndefined(found(path), path)
  })
})

describe.each(engines)("raw routes on %s", (engine) => {
  const served = <A>(use: (url: string, port: number) => Promise<A>): Promise<A> =>
    withFront({ engine, hot: [hot], raw, app, corsOrigins: ["https://one.example"] }, ({ url, port }) =>
      use(url, port)
    )

  it("see the path and parameters as they were sent, and every header in order", () =>
    served(async (_, port) => {
      const text = await exchange(
        port,
        "GET /direct/%41%2Fb?x=%20 HTTP/1.1\r\nHost: x\r\nX-Twice: 1\r\nX-Other: o\r\nx-twice: 2\r\n\r\n",
        (heard) => heard.endsWith("GET 1")
      )
      assert.strictEqual(statusOf(text), 200)
      assert.include(text, '{"path":"/direct/%41%2Fb","params":{"token":"%41%2Fb"},"query":"x=%20"}')
      assert.include(text, '["host","x","x-twice","1","x-other","o","x-twice","2"]')
      assert.match(text, /x-address: 127\.0\.0\.1\r\n/i)
      assert.notMatch(text, /x-bad|9999/i)
    }))

  it("write headers that were put together before as they write others: in order, in Latin-1, on lines of their own", () =>
    served(async (_, port) => {
      const origin = "https://one.example"
      const head = `GET /blocks HTTP/1.1\r\nHost: x\r\nOrigin: ${origin}\r\n\r\n`
      const text = await exchange(port, head, (heard) => heard.endsWith("told"))
      const lines = text
        .split("\r\n")
        .filter((line) => /^x|^content-length|^access-control-allow-o/i.test(line))
      assert.deepStrictEqual(
        lines.filter((line) => line.startsWith("X")),
        ["X-Own: 1", "X-First: f\u00fcr", "X-Last: ", "X-Name: b\u00e4r", "X-First: f\u00fcr", "X-Last: "]
      )
      assert.deepStrictEqual(
        lines
          .filter((line) => !line.startsWith("X"))
          .map((line) => line.toLowerCase())
          .toSorted(),
        [`access-control-allow-origin: ${origin}`, "content-length: 4"]
      )
    }))

  it("take any method under a prefix, OPTIONS too, and variants of the path as they are", () =>
    served(async (_, port) => {
      for (const head of ["GET /s3/", "PROPFIND /s3//A/%2e%2e/", "OPTIONS /s3/b", "PUT /s3/b/acl/c"]) {
        const text = await exchange(port, request(head), hasHead)
        assert.strictEqual(statusOf(text), 200, head)
        assert.match(text, /x-route: \/s3\/\*\r\n/i)
      }
    }))

  it("come after hot routes and before ordinary ones", () =>
    served(async (url, port) => {
      assert.strictEqual(await (await fetch(`${url}/hot/one`, { method: "POST", body: "x" })).text(), "hot")
      assert.strictEqual((await fetch(`${url}/hot/one`)).status, 405)
      assert.strictEqual((await fetch(`${url}/hot/two`)).headers.get("x-route"), "/hot/:any")
      assert.strictEqual(await (await fetch(`${url}/ordinary`)).text(), "ordinary")
      assert.strictEqual(statusOf(await exchange(port, request("GET /direct/"), hasHead)), 404)
    }))

  it("answer another method with 405 and what is allowed", () =>
    served(async (url) => {
      const refused = await fetch(`${url}/direct/x`, { method: "PUT", body: "x" })
      assert.strictEqual(refused.status, 405)
      assert.strictEqual(refused.headers.get("allow"), "GET, DELETE, HEAD, OPTIONS")
      assert.strictEqual(await refused.text(), '{"error":"Method not allowed"}')
      assert.strictEqual((await fetch(`${url}/s3/b/acl`)).status, 405)
      assert.strictEqual((await fetch(`${url}/exact/`, { method: "POST" })).status, 404)
    }))

  it("leave the other methods of a path that they share to ordinary endpoints", () =>
    served(async (url, port) => {
      assert.strictEqual(await (await fetch(`${url}/shared`, { method: "POST", body: "x" })).text(), "POST ")
      for (const method of ["GET", "OPTIONS"])
        assert.strictEqual(await (await fetch(`${url}/shared`, { method })).text(), "ordinary")
      assert.strictEqual((await fetch(`${url}/shared`, { method: "DELETE" })).status, 404)
      // One connection serves both.
      const both = request("GET /shared") + request("POST /shared", "x") + request("GET /shared")
      const text = await exchange(port, both, (heard) => heard.split("ordinary").length === 3)
      assert.match(text, /ordinary[^]*POST [^]*ordinary/)
    }))

  it("answer HEAD as GET without the body", () =>
    served(async (url) => {
      const answer = await fetch(`${url}/direct/x`, { method: "HEAD" })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers.get("content-length"), "5")
    }))

  it("have the front's CORS", () =>
    served(async (url, port) => {
      const origin = { origin: "https://one.example" }
      const allowed = await fetch(`${url}/direct/x`, { headers: origin })
      assert.strictEqual(allowed.headers.get("access-control-allow-origin"), "https://one.example")
      const preflight = await exchange(
        port,
        "OPTIONS /direct/x HTTP/1.1\r\nHost: x\r\nOrigin: https://one.example\r\n" +
          "Access-Control-Request-Headers: range\r\n\r\n",
        hasHead
      )
      assert.match(preflight, /^HTTP\/1\.1 204 /)
      assert.match(preflight, /access-control-allow-methods: GET, DELETE, HEAD, OPTIONS\r\n/i)
      assert.match(preflight, /access-control-allow-headers: range\r\n/i)
    }))

  it("answer a handler that throws, at once or later, with 500 and say nothing of it", async () => {
    const lines: Array<string> = []
    await withFront({ engine, raw, log: (line) => lines.push(line) }, async ({ url }) => {
      for (const path of ["/throw", "/throw-later"]) {
        for (const body of [undefined, "x".repeat(3000)]) {
          const answer = await fetch(url + path, body === undefined ? {} : { method: "POST", body })
          assert.strictEqual(answer.status, 500)
          assert.strictEqual(await answer.text(), '{"error":"Internal server error"}')
        }
      }
    })
    assert.strictEqual(lines.filter((line) => line.includes("threw")).length, 4)
  })

  it("answer errors in the route's own form", () =>
    withFront(
      { engine, raw: [echo(["PUT"], "/own/*", { errors: (status, text) => `<${status} ${text}>` })] },
      async ({ url, port }) => {
        assert.strictEqual(await (await fetch(`${url}/own/x`)).text(), "<405 Method not allowed>")
        const long = await exchange(port, request("PUT /own/x", "x".repeat(5000)), (text) =>
          text.endsWith(">")
        )
        assert.include(long, "<413 Request body too large>")
      }
    ))

  it("answer once", () =>
    withFront(
      {
        engine,
        raw: [
          echo(["GET"], "/twice", {
            handle: (_, __, reply) => {
              reply.send(200, [], "first")
              reply.send(201, [], "second")
              assert.isTrue(reply.stream(202, []).write("third"))
              reply.cut()
            }
          })
        ]
      },
      async ({ port }) => {
        const client = await RawClient.open(port)
        for (let round = 1; round <= 2; round++) {
          await client.send(request("GET /twice"))
          await client.until((text) => text.split("first").length === round + 1)
        }
        assert.notMatch(client.text, /second|third| 20[12] /)
        client.destroy()
      }
    ))
})
