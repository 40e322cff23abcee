import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import type { ServeError } from "effect/http/HttpServerError"
import * as Layer from "effect/Layer"
import * as Addon from "./uws/Addon.ts"
import { type FrontOptions, limitsOf } from "./FrontOptions.ts"
import { ByteBudget } from "./ByteBudget.ts"
import type { HotContext } from "./HotAnswer.ts"
import * as HotCors from "./HotCors.ts"
import * as HotPaths from "./HotPaths.ts"
import { HotRoutes } from "./HotRoute.ts"
import { HotSockets } from "./HotSocket.ts"
import * as NodeFront from "./node/NodeFront.ts"
import { OpenSockets } from "./OpenSockets.ts"
import { BlockPool } from "./BlockPool.ts"
import { RawRouteList } from "./RawRoute.ts"
import * as UwsServer from "./uws/UwsServer.ts"

const missingForwardedFor = (peer: string): string =>
  `TRUST_PROXY is set, and ${peer} handed on a request without X-Forwarded-For: all visitors behind a proxy that does ` +
  `not set it share its address, and its limits. README, "Behind a proxy", has the line for it. This is said once.`

/**
 * The process's HTTP server: uWebSockets.js where its addon is the pinned one and loads, Node's own server elsewhere or
 * where the options ask for it. Both serve the same app, hot routes and hot sockets. When its scope closes it stops
 * listening, lets requests in flight finish for `drainDeadlineMillis`, interrupts the rest, and closes.
 */
export const layer = (
  options: FrontOptions
): Layer.Layer<HttpServer.HttpServer, ServeError, HotRoutes | HotSockets> =>
  Layer.effect(
    HttpServer.HttpServer,
    Effect.gen(function* () {
      const routes = yield* HotRoutes
      const sockets = yield* HotSockets
      const services = yield* Effect.context<never>()
      let isMissingTold = false
      const context: HotContext = {
        paths: HotPaths.make(routes, sockets, yield* RawRouteList),
        sockets,
        open: new OpenSockets(),
        cors: HotCors.make(options.corsOrigins ?? []),
        held: new ByteBudget(limitsOf(options)),
        blocks: new BlockPool(limitsOf(options)),
        report: (defect) =>
          void Effect.runForkWith(services)(Effect.logError("A hot route or socket threw", defect)),
        onMissingForwardedFor: (peer) => {
          if (isMissingTold) return
          isMissingTold = true
          Effect.runForkWith(services)(Effect.logWarning(missingForwardedFor(peer)))
        }
      }
      if (options.engine === "node") return yield* NodeFront.make(options, context)
      const loaded = Addon.load(limitsOf(options))
      if (loaded._tag === "Loaded") return yield* UwsServer.make(loaded.addon, options, routes, context)
      yield* Effect.logWarning("uWebSockets.js is not used, Node's HTTP server is", loaded.reasons)
      return yield* NodeFront.make(options, context)
    })
  )
