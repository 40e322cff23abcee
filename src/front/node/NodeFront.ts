import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as ByteSize from "effect/ByteSize"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import * as HttpServer from "effect/http/HttpServer"
import type { ServeError } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as ClientAddress from "../ClientAddress.ts"
import { plainErrors } from "../PlainErrors.ts"
import { type FrontOptions, limitsOf } from "../FrontOptions.ts"
import type { HotContext } from "../HotAnswer.ts"
import { NodeFrontServer } from "./NodeFrontServer.ts"
import type { NodeHotContext } from "./NodeExchange.ts"
import { drain as drainSockets } from "../HotAnswer.ts"

/** The front on Node's own HTTP server, for machines on which uWebSockets.js does not load. */
export const make = (
  options: FrontOptions,
  context: HotContext
): Effect.Effect<HttpServer.HttpServer["Service"], ServeError, Scope.Scope> =>
  Effect.gen(function* () {
    const limits = limitsOf(options)
    const { trustProxy } = options
    const clientAddress = ClientAddress.make(trustProxy, context.onMissingForwardedFor)
    const hot: NodeHotContext = {
      ...context,
      limits,
      clientAddress,
      streaming: new WeakSet(),
      arriving: new WeakMap()
    }
    const nodeServer = new NodeFrontServer(hot)
    // Added first, so that it runs last.
    yield* Effect.addFinalizer(() => Effect.sync(() => nodeServer.closeAllConnections()))
    const server = yield* NodeHttpServer.make(() => nodeServer, {
      port: options.port,
      host: options.host ?? "0.0.0.0",
      // It would wait for WebSockets too, which end only once their handlers are interrupted.
      disablePreemptiveShutdown: true,
      websocket: { maxPayload: limits.webSocketMaxPayloadBytes }
    })
    return HttpServer.make({
      address: server.address,
      serve: (httpApp, middleware) =>
        Effect.gen(function* () {
          const scope = yield* Effect.scope
          // Every request is asked for its address here, those that look after this server's health too: none is missed.
          const app = withClientAddress(plainErrors(httpApp), ClientAddress.make(trustProxy))
          const serve = middleware === undefined ? server.serve(app) : server.serve(app, middleware)
          yield* withBodyLimit(serve, limits.maxBodyBytes)
          // Added last, so that it runs before the requests that are left are interrupted.
          yield* Scope.addFinalizer(scope, drain(nodeServer, context, limits.drainDeadlineMillis))
        })
    })
  })

const drain = (server: NodeFrontServer, context: HotContext, deadlineMillis: number): Effect.Effect<void> => {
  const idle = Effect.callback<void>((resume) => server.drain(() => resume(Effect.void)))
  return drainSockets(context, idle, deadlineMillis)
}

const withClientAddress = <E, R>(
  app: Effect.Effect<HttpServerResponse, E, R>,
  clientAddress: ClientAddress.ClientAddress
): Effect.Effect<HttpServerResponse, E, R | HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest, (request) => {
    const raw = Option.getOrElse(request.remoteAddress, () => "")
    const peer = ClientAddress.canonicalAddress(raw) ?? raw
    const client = clientAddress(() => peer, request.headers["x-forwarded-for"] ?? "")
    const modified = request.modify({ remoteAddress: Option.some(client), peerAddress: Option.some(peer) })
    return Effect.provideService(app, HttpServerRequest, modified)
  })

const withBodyLimit = <A, E, R>(
  serve: Effect.Effect<A, E, R>,
  maxBodyBytes: number
): Effect.Effect<A, E, R> =>
  Effect.contextWith((services: Context.Context<R>) =>
    services.mapUnsafe.has(MaxBodySize.key)
      ? serve
      : Effect.provideService(serve, MaxBodySize, ByteSize.bytes(maxBodyBytes))
  )
