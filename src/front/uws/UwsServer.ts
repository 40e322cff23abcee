import { lookup } from "node:dns/promises"
import { isIP } from "node:net"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import { ServeError } from "effect/http/HttpServerError"
import * as NetAddress from "effect/net/NetAddress"
import * as Scope from "effect/Scope"
import { afterDrain } from "./AfterDrain.ts"
import type { UwsAddon, UwsApp, UwsListenSocket, UwsRequest, UwsResponse, UwsSocketContext } from "./Addon.ts"
import * as ClientAddress from "../ClientAddress.ts"
import { starting } from "../FrontAnswer.ts"
import { type FrontOptions, limitsOf } from "../FrontOptions.ts"
import { FrontState } from "./FrontState.ts"
import type { HotContext } from "../HotAnswer.ts"
import type { HotRoute } from "../HotRoute.ts"
import * as LateUpgrades from "./LateUpgrades.ts"
import { drain as drainSockets } from "../HotAnswer.ts"
import { answer, answerOwnPath, register } from "./UwsRoutes.ts"
import { registerSockets } from "./UwsHotSocket.ts"
import { makeServe, type Serve } from "./UwsServe.ts"
import { Upgrade } from "./UwsSocket.ts"

/** The app that serves ordinary requests; none before `serve` and after its scope. */
interface Served {
  current: Serve | undefined
}

/** An Effect `HttpServer` on uWebSockets.js. Closing the scope of `serve` drains; closing this one ends everything. */
export const make = (
  addon: UwsAddon,
  options: FrontOptions,
  routes: ReadonlyArray<HotRoute>,
  context: HotContext
): Effect.Effect<HttpServer.HttpServer["Service"], ServeError, Scope.Scope> =>
  Effect.gen(function* () {
    // No "uWebSockets: 20" header on every answer.
    addon._cfg("silent")
    const trusted = options.trustProxy
    const state = new FrontState(
      limitsOf(options),
      trusted === undefined ? undefined : ClientAddress.make(trusted, context.onMissingForwardedFor),
      yield* LateUpgrades.make(addon)
    )
    const app = yield* Effect.acquireRelease(
      Effect.sync(() => addon.App()),
      (acquired) =>
        Effect.sync(() => {
          acquired.close()
          state.stop()
        })
    )
    const served: Served = { current: undefined }
    limitConnections(app, state)
    register(app, routes, context, state)
    registerSockets(addon, app, context, state)
    webSockets(addon, app, state, served)
    app.any("/*", (response, request) => {
      const path = request.getUrl()
      const method = request.getCaseSensitiveMethod()
      if (!answerOwnPath(path, method, response, request, context, state)) {
        dispatch(served, response, request, undefined, state)
      }
    })
    const host = options.host ?? "0.0.0.0"
    const ip = yield* ipOf(host)
    const listener = yield* listen(addon, app, ip, options.port)
    const address = yield* Effect.fromResult(
      NetAddress.inetAddressFromIpString(ip, addon.us_socket_local_port(listener))
    ).pipe(Effect.mapError((cause) => new ServeError({ cause })))
    return HttpServer.make({
      address,
      serve: (httpApp, middleware) =>
        Effect.gen(function* () {
          const scope = yield* Effect.scope
          served.current = yield* makeServe(httpApp, middleware, Scope.forkUnsafe(scope, "parallel"), state)
          // Added last, so that it runs before the requests that are left are interrupted.
          yield* Scope.addFinalizer(scope, drain(addon, listener, context, state))
        })
    })
  })

const dispatch = (
  served: Served,
  response: UwsResponse,
  request: UwsRequest,
  socket: UwsSocketContext | undefined,
  state: FrontState
): void => {
  if (served.current === undefined) answer(response, request, starting, [["Retry-After", "1"]], state)
  else served.current(response, request, socket)
}

/** A connection that became a WebSocket leaves without the filter being told; its close handler counts it. */
const limitConnections = (app: UwsApp, state: FrontState): void => {
  app.filter((response, change) => {
    state.connections += change
    if (change > 0 && state.connections > state.limits.maxConnections) response.close()
  })
}

const webSockets = (addon: UwsAddon, app: UwsApp, state: FrontState, served: Served): void => {
  const { limits } = state
  app.ws("/*", {
    maxPayloadLength: limits.webSocketMaxPayloadBytes,
    // No limit here: writes wait at webSocketHighWaterBytes, and a message must never be dropped silently.
    maxBackpressure: 0,
    idleTimeout: limits.webSocketIdleTimeoutSeconds,
    sendPingsAutomatically: true,
    compression: addon.DISABLED,
    upgrade: (response, request, socket) => dispatch(served, response, request, socket, state),
    open: (socket) => upgradeOf(socket.getUserData())?.opened(socket),
    message: (socket, message, isBinary) => upgradeOf(socket.getUserData())?.received(message, isBinary),
    drain: (socket) => {
      const upgrade = upgradeOf(socket.getUserData())
      if (upgrade !== undefined) afterDrain(() => upgrade.drained())
    },
    close: (socket, code, reason) => {
      state.connections--
      upgradeOf(socket.getUserData())?.closed(code, Buffer.from(reason).toString("utf8"))
    }
  })
}

const upgradeOf = (userData: object): Upgrade | undefined =>
  "upgrade" in userData && userData.upgrade instanceof Upgrade ? userData.upgrade : undefined

/** A name may have several addresses; the addon would choose one that it does not tell. */
const ipOf = (host: string): Effect.Effect<string, ServeError> =>
  isIP(host) === 0
    ? Effect.tryPromise({
        try: async () => (await lookup(host)).address,
        catch: (cause) => new ServeError({ cause })
      })
    : Effect.succeed(host)

const listen = (
  addon: UwsAddon,
  app: UwsApp,
  host: string,
  port: number
): Effect.Effect<UwsListenSocket, ServeError> =>
  Effect.callback((resume) => {
    // Without it two processes on one port would share its connections instead of the second being refused.
    app.listen(host, port, addon.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
      const cause = new Error(`Could not listen on ${host}:${port}`)
      resume(socket === false ? Effect.fail(new ServeError({ cause })) : Effect.succeed(socket))
    })
  })

/** No new connections, `Connection: close` on every answer, and time for what is in flight. */
const drain = (
  addon: UwsAddon,
  listener: UwsListenSocket,
  context: HotContext,
  state: FrontState
): Effect.Effect<void> =>
  Effect.suspend(() => {
    state.isDraining = true
    addon.us_listen_socket_close(listener)
    const idle = Effect.callback<void>((resume) => Effect.sync(state.whenIdle(() => resume(Effect.void))))
    return drainSockets(context, idle, state.limits.drainDeadlineMillis)
  })
