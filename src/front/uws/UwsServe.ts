import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpEffect from "effect/http/HttpEffect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import type { HttpMiddleware } from "effect/http/HttpMiddleware"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import type { UwsRequest, UwsResponse, UwsSocketContext } from "./Addon.ts"
import { Exchange } from "./Exchange.ts"
import { plainErrors } from "../PlainErrors.ts"
import { badRequest } from "../FrontAnswer.ts"
import type { FrontState } from "./FrontState.ts"
import { RequestBody } from "./RequestBody.ts"
import { read, type RequestHead } from "../RequestHead.ts"
import { respond } from "./UwsResponder.ts"
import { answerAndClose } from "./LastAnswer.ts"
import { UwsServerRequest } from "./UwsServerRequest.ts"
import { Upgrade } from "./UwsSocket.ts"

/** Runs one request through the app; with a socket context it may become a WebSocket. */
export type Serve = (response: UwsResponse, request: UwsRequest, socket: UwsSocketContext | undefined) => void

/** A fiber per request, interrupted when the client leaves or `scope` closes. */
export const makeServe = (
  httpApp: Effect.Effect<HttpServerResponse, unknown, HttpServerRequest | Scope.Scope>,
  middleware: HttpMiddleware | undefined,
  scope: Scope.Scope,
  state: FrontState
): Effect.Effect<Serve> =>
  Effect.contextWith((services: Context.Context<never>) => {
    const handled = HttpEffect.toHandled(plainErrors(httpApp), respond, middleware)
    const limited = withBodyLimit(services, state.limits.maxBodyBytes)
    return Effect.succeed((response, request, socket) => {
      const head = read(request)
      if (head.isAmbiguous) return answerAndClose(response, request, badRequest)
      const body = bodyOf(response, head, state)
      const exchange = new Exchange(response, state, body, head.isChunked || head.isLast)
      const serverRequest = requestOf(exchange, request, head, socket, state)
      const fiber = Effect.runForkWith(Context.add(limited, HttpServerRequest, serverRequest))(handled)
      exchange.leave()
      if (fiber.pollUnsafe() === undefined) exchange.fiber = Fiber.runIn(fiber, scope)
      // Nothing can come from the socket before this returns, so an answer given at once is spared both handlers.
      if (exchange.isGone) return
      response.onAborted(() => exchange.abort())
      if (body !== undefined) response.onData((chunk, isLast) => exchange.receive(chunk, isLast))
    })
  })

const withBodyLimit = (services: Context.Context<never>, maxBodyBytes: number): Context.Context<never> =>
  services.mapUnsafe.has(MaxBodySize.key)
    ? services
    : Context.add(services, MaxBodySize, ByteSize.bytes(maxBodyBytes))

/** undefined where there is none, which is most requests. */
const bodyOf = (response: UwsResponse, head: RequestHead, state: FrontState): RequestBody | undefined =>
  head.isChunked || (head.contentLength ?? 0) > 0
    ? new RequestBody(response, head.contentLength, state)
    : undefined

const requestOf = (
  exchange: Exchange,
  request: UwsRequest,
  head: RequestHead,
  socket: UwsSocketContext | undefined,
  state: FrontState
): UwsServerRequest => {
  const query = request.getQuery()
  const path = request.getUrl()
  const url = query === undefined || query === "" ? path : `${path}?${query}`
  const { headers } = head
  const handshake = socket && {
    key: headers["sec-websocket-key"] ?? "",
    protocol: headers["sec-websocket-protocol"] ?? "",
    extensions: headers["sec-websocket-extensions"] ?? "",
    context: socket
  }
  const upgrade = handshake && new Upgrade(exchange, handshake, state.limits)
  return new UwsServerRequest(
    { exchange, method: request.getCaseSensitiveMethod(), url, upgrade, clientAddress: state.clientAddress },
    { url, headers }
  )
}
