import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import type { HttpServerError } from "effect/http/HttpServerError"
import type { MultipartError } from "effect/http/Multipart"
import type { SocketError } from "effect/socket/Socket"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as NetAddress from "effect/net/NetAddress"
import * as Front from "#src/front/Front.ts"
import type { FrontOptions } from "#src/front/FrontOptions.ts"
import { HotRoutes, type HotRoute } from "#src/front/HotRoute.ts"
import { type RawRoute, RawRouteList } from "#src/front/RawRoute.ts"
import { HotSockets, type HotSocketRoute } from "#src/front/HotSocket.ts"
import * as NodeServices from "@effect/platform-node/NodeServices"

/** Both engines must pass every test; where uWebSockets.js differs by design, a test says how. */
export const engines = ["uws", "node"] as const
export type Engine = (typeof engines)[number]

export interface RunningFront {
  readonly port: number
  readonly url: string
  /** asks the server to stop, as SIGTERM does; resolves when it has */
  readonly stop: () => Promise<void>
}

/** Routes that may fail as the front's own failures do. */
export type App = Layer.Layer<
  never,
  never,
  | HttpRouter.HttpRouter
  | HttpRouter.Request<"Error", HttpServerError>
  | HttpRouter.Request<"Error", MultipartError>
  | HttpRouter.Request<"Error", SocketError>
>

export interface TestFrontOptions extends Omit<FrontOptions, "port" | "engine"> {
  readonly port?: number
  readonly engine: Engine
  readonly app?: App
  readonly hot?: ReadonlyArray<HotRoute>
  readonly sockets?: ReadonlyArray<HotSocketRoute>
  readonly raw?: ReadonlyArray<RawRoute>
  /** takes what is logged; absent: nothing is */
  readonly log?: (line: string) => void
}

/** A front on a free loopback port, for as long as `use` runs. */
export const withFront = async <A>(
  { engine, app, hot, log, raw, sockets, ...options }: TestFrontOptions,
  use: (front: RunningFront) => Promise<A>
): Promise<A> => {
  const stopping = Deferred.makeUnsafe<void>()
  const started = Promise.withResolvers<number>()
  const front = Front.layer({
    host: "127.0.0.1",
    ...options,
    port: options.port ?? 0,
    engine: engine === "node" ? "node" : "auto"
  })
  const layer = HttpRouter.serve(app ?? Layer.empty, { disableListenLog: true, disableLogger: true }).pipe(
    Layer.provideMerge(front),
    Layer.provide([
      Layer.succeed(HotRoutes, hot ?? []),
      Layer.succeed(HotSockets, sockets ?? []),
      Layer.succeed(RawRouteList, raw ?? [])
    ]),
    Layer.provideMerge(NodeServices.layer),
    Layer.provideMerge(
      Logger.layer(log === undefined ? [] : [Logger.make(({ message }) => log(String(message)))])
    )
  )
  const program = Effect.gen(function* () {
    const { address } = yield* HttpServer.HttpServer
    if (NetAddress.isUnixPathAddress(address)) return yield* Effect.die("a port was expected")
    started.resolve(address.port)
    yield* Deferred.await(stopping)
  })
  const running = Effect.runPromise(Effect.provide(program, layer))
  running.catch((cause) => started.reject(cause))
  const stop = async () => {
    Deferred.doneUnsafe(stopping, Effect.void)
    await running
  }
  const port = await started.promise
  try {
    return await use({ port, url: `http://127.0.0.1:${port}`, stop })
  } finally {
    await stop()
  }
}
