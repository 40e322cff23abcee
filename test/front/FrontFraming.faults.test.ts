import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import type { HotRoute } from "#src/front/HotRoute.ts"
import type { RawRoute } from "#src/front/RawRoute.ts"
import { type AmbiguousRequest, ambiguousRequests, sneaked } from "./AmbiguousRequests.ts"
import { RawClient } from "./RawClient.ts"
import { type Engine, engines, withFront } from "./TestFront.ts"

/** The number of times that the smuggled request was served. */
let sneakedCount = 0

const app = Layer.mergeAll(
  HttpRouter.add(
    "GET",
    "/sneaked",
    Effect.sync(() => {
      sneakedCount++
      return Response.text("sneaked")
    })
  ),
  HttpRouter.add(
    "*",
    "/echo",
    Effect.flatMap(HttpServerRequest, (request) =>
      Effect.map(request.text, (text) => Response.text(`<${text}>`))
    )
  )
)

const hot: HotRoute = {
  method: "POST",
  path: "/hot",
  maxBodyBytes: 4096,
  headers: ["user-agent"],
  cors: "open",
  handle: (_, body, reply) => reply.send(200, [], `<${Buffer.from(body).toString("latin1")}>`)
}

const raw: RawRoute = {
  methods: ["POST"],
  path: "/raw/*",
  maxBodyBytes: 4096,
  cors: "open",
  handle: async (_, body, reply) => {
    let text = ""
    for (let piece = await body.pull(); typeof piece !== "string"; piece = await body.pull())
      text += Buffer.from(piece).toString("latin1")
    reply.send(200, [], `<${text}>`)
  }
}

const paths = ["/hot", "/raw/echo", "/echo", "/nowhere"]

/** Whole answers that were heard, by their status lines. */
const statusesOf = (text: string): ReadonlyArray<number> =>
  Array.from(text.matchAll(/HTTP\/1\.1 (\d{3}) /g), (match) => Number(match[1]))

/** In one packet, and in two: a second request in the same buffer is read before an answer is out. */
const packetings = {
  "in one packet": (text: string) => [text],
  "in two packets": (text: string) =>
    text.endsWith(sneaked) ? [text.slice(0, -sneaked.length), sneaked] : [text]
} as const

const said = async (port: number, packets: ReadonlyArray<string>): Promise<string> => {
  const client = await RawClient.open(port)
  for (const packet of packets) {
    await client.send(Buffer.from(packet, "latin1"))
    // A server that says nothing is waiting for more.
    const deadline = performance.now() + 100
    while (!client.isClosed && statusesOf(client.text).length === 0 && performance.now() < deadline)
      await sleep(2)
  }
  // The server has read all of it by the time that it reads the end.
  client.socket.end()
  return client.closed()
}

const check = async (
  engine: Engine,
  port: number,
  path: string,
  request: AmbiguousRequest,
  packets: ReadonlyArray<string>
): Promise<void> => {
  sneakedCount = 0
  const text = await said(port, packets)
  const [status = 0, ...more] = statusesOf(text)
  const isServed = status === 200
  const where = `${request.name} ${path}: ${JSON.stringify(text)}`
  const isUnseen = engine === "uws" && request.isUnseen === true
  if (request.allowed === "refuse" && !isUnseen) assert.isTrue(status === 0 || status >= 400, where)
  const mayGoOn = request.isPipelined === true || (engine === "node" && request.allowed !== "refuse")
  if (mayGoOn && sneakedCount > 0) return
  assert.strictEqual(sneakedCount, 0, where)
  // Node's parser says 400 where a body turns out to be faulty whose request has been answered.
  assert.deepStrictEqual(
    more.filter((code) => engine === "uws" || code !== 400),
    [],
    where
  )
  if (isServed) assert.match(text, /<(abc|GET \/sneaked[^>]*)?>$/, where)
}

describe.each(engines)("requests that can be read in two ways, on %s", (engine) => {
  it("are at least sixty", () => {
    assert.isAtLeast(ambiguousRequests.length, 60)
  })

  describe.each(Object.entries(packetings))("%s", (_, packetsOf) => {
    it.each(ambiguousRequests.map((request) => [request.name, request.section, request] as const))(
      "never have a second one answered: %s (%s)",
      (_name, _section, request) =>
        withFront({ engine, app, hot: [hot], raw: [raw] }, async ({ port }) => {
          for (const path of paths) await check(engine, port, path, request, packetsOf(request.text(path)))
        })
    )
  })
})
