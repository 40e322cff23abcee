import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import type { ServeError } from "effect/http/HttpServerError"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import * as Addon from "#src/front/uws/Addon.ts"
import * as Front from "#src/front/Front.ts"
import { HotRoutes, type HotRoute } from "#src/front/HotRoute.ts"
import { HotSockets } from "#src/front/HotSocket.ts"

/** The same two endpoints on every server: GET /hello says hello, POST /event takes a body and answers 202. */

/** Listens on a free port for as long as `use` takes. */
type Use = (port: number) => Promise<void>

const hello = "hello, world"
const host = "127.0.0.1"

const addon = (): Addon.Loaded => Addon.load({ maxHeaderBytes: 16 * 1024 })

export const unavailableUws = (): string | undefined => {
  const loaded = addon()
  return loaded._tag === "Loaded" ? undefined : loaded.reasons.join("; ")
}

const withRawUws = async (use: Use): Promise<void> => {
  const loaded = addon()
  if (loaded._tag === "NotLoaded") throw new Error(loaded.reasons.join("; "))
  const app = loaded.addon.App()
  app.get("/hello", (response) => response.writeHeader("content-type", "text/plain").end(hello))
  app.post("/event", (response) => {
    let bytes = 0
    response.onAborted(() => undefined)
    response.onData((chunk, isLast) => {
      bytes += chunk.byteLength
      if (isLast) response.writeStatus(bytes > 0 ? "202 Accepted" : "400 Bad Request").end()
    })
  })
  const port = await new Promise<number>((resolve, reject) => {
    app.listen(host, 0, 0, (socket) => {
      if (socket === false) reject(new Error("Could not listen"))
      else resolve(loaded.addon.us_socket_local_port(socket))
    })
  })
  try {
    return await use(port)
  } finally {
    app.close()
  }
}

const withRawNode = async (use: Use): Promise<void> => {
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "text/plain", "content-length": hello.length }).end(hello)
      return
    }
    let bytes = 0
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length
    })
    request.on("end", () => response.writeHead(bytes > 0 ? 202 : 400, { "content-length": 0 }).end())
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const address = server.address()
  try {
    return await use(typeof address === "object" && address !== null ? address.port : 0)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const event: HotRoute = {
  method: "POST",
  path: "/event",
  maxBodyBytes: 64 * 1024,
  headers: ["user-agent", "content-type"],
  cors: "open",
  handle: (_, body, reply) => reply.send(body.length > 0 ? 202 : 400, [])
}

const app = HttpRouter.add("GET", "/hello", Response.text(hello))

const withServer = (server: Layer.Layer<HttpServer.HttpServer, ServeError>, use: Use): Promise<void> =>
  Effect.gen(function* () {
    const { address } = yield* HttpServer.HttpServer
    return yield* Effect.promise(() => use(NetAddress.isUnixPathAddress(address) ? 0 : address.port))
  }).pipe(
    Effect.provide(
      HttpRouter.serve(app, { disableListenLog: true, disableLogger: true }).pipe(Layer.provideMerge(server))
    ),
    Effect.runPromise
  )

const withFront =
  (engine: "auto" | "node") =>
  (use: Use): Promise<void> =>
    withServer(
      Front.layer({ port: 0, host, engine }).pipe(
        Layer.provide([Layer.succeed(HotRoutes, [event]), Layer.succeed(HotSockets, [])])
      ),
      use
    )

const withEffectOnNode = (use: Use): Promise<void> =>
  withServer(NodeHttpServer.layerServer(createServer, { port: 0, host }), use)

export const servers = {
  "Effect on Node": withEffectOnNode,
  "the front (uWS)": withFront("auto"),
  "the front (Node)": withFront("node"),
  "raw Node": withRawNode,
  "raw uWS": withRawUws
} as const

export type ServerName = keyof typeof servers
