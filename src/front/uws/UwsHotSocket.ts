import type { UwsAddon, UwsApp, UwsRequest, UwsResponse, UwsSocketContext, UwsWebSocket } from "./Addon.ts"
import { afterDrain } from "./AfterDrain.ts"
import { badRequest, upgradeRequired } from "../FrontAnswer.ts"
import { FrontSocket, type SocketSetup } from "../FrontSocket.ts"
import type { FrontState, Watched } from "./FrontState.ts"
import type { HotContext } from "../HotAnswer.ts"
import type { HotRoute } from "../HotRoute.ts"
import type { HotHandshake, HotSocket, HotSocketListener } from "../HotSocket.ts"
import { type HotHead, readHotHead, wantedHeaders } from "./HotHead.ts"
import { answerAndClose } from "./LastAnswer.ts"
import { UwsHotExchange } from "./UwsHotExchange.ts"
import { answer, hasBody } from "./UwsRoutes.ts"
import { isHandshake, upgradeHeaders } from "../WebSocketHandshake.ts"

/** Hot sockets as native routes, which uWebSockets.js matches before any pattern. */
export const registerSockets = (
  addon: UwsAddon,
  app: UwsApp,
  context: HotContext,
  state: FrontState
): void => {
  for (const route of context.sockets) {
    const setup: UwsSocketSetup = { route, context, limits: state.limits, state }
    const wanted = wantedHeaders(route.headers)
    app.ws(route.path, {
      // A message too long for the route gets a reason; one too long for the addon is just dropped.
      maxPayloadLength: 2 * route.maxFrameBytes,
      // No limit here, where messages would be left out: the front drops a socket that has too much waiting.
      maxBackpressure: 0,
      // Pings are only sent to sockets on which nothing else happens. Without a limit one whose client went on reading
      // after its end would never be let go.
      idleTimeout: state.limits.webSocketIdleTimeoutSeconds,
      sendPingsAutomatically: true,
      compression: addon.DISABLED,
      upgrade: (response, request, socket) => {
        const head = readHotHead(request, wanted)
        if (head.isAmbiguous || hasBody(request)) answerAndClose(response, request, badRequest)
        else if (!isHandshake((name) => request.getHeader(name)))
          answer(response, request, upgradeRequired, upgradeHeaders, state)
        else handshake(setup, response, request, head, socket)
      },
      open: (socket) => hotSocketOf(socket)?.opened(socket),
      message: (socket, message, isBinary) => hotSocketOf(socket)?.message(message, isBinary),
      drain: (socket) => {
        const hot = hotSocketOf(socket)
        if (hot !== undefined) afterDrain(() => hot.writable())
      },
      close: (socket, code) => {
        state.connections--
        hotSocketOf(socket)?.ended(code)
      }
    })
  }
}

interface UwsSocketSetup extends SocketSetup {
  readonly state: FrontState
}

/** The handshake is a hot request whose answer may be a WebSocket. */
const handshake = (
  setup: UwsSocketSetup,
  response: UwsResponse,
  request: UwsRequest,
  head: Readonly<HotHead>,
  context: UwsSocketContext
): void => {
  const { path, headers } = setup.route
  const key = request.getHeader("sec-websocket-key")
  const route: HotRoute = {
    method: "GET",
    path,
    maxBodyBytes: 0,
    headers,
    cors: "configured",
    handle: () => setup.route.upgrade(exchange, new UwsHandshake(exchange, setup, key, context))
  }
  const exchange: UwsHotExchange = new UwsHotExchange(
    route,
    response,
    request,
    head,
    setup.context,
    setup.state
  )
  exchange.beginHandshake()
}

class UwsHandshake implements HotHandshake {
  private readonly exchange: UwsHotExchange
  private readonly setup: UwsSocketSetup
  private readonly key: string
  private readonly context: UwsSocketContext

  constructor(exchange: UwsHotExchange, setup: UwsSocketSetup, key: string, context: UwsSocketContext) {
    this.exchange = exchange
    this.setup = setup
    this.key = key
    this.context = context
  }

  get aborted(): boolean {
    return this.exchange.aborted
  }

  accept(open: (socket: HotSocket) => HotSocketListener): void {
    this.exchange.upgrade((response) => {
      // Neither a subprotocol nor an extension is agreed on.
      response.upgrade({ hot: new UwsHotSocket(this.setup, open) }, this.key, "", "", this.context)
    })
  }

  refuse(status: number, headers: ReadonlyArray<readonly [string, string]>, body: string): void {
    this.exchange.send(status, headers, body)
  }

  onAbort(listener: () => void): void {
    this.exchange.onAbort(listener)
  }
}

/** The answer of the addon where the kernel has taken all that was written. */
const sent = 1

/** The close frames of an ended socket, sent once its client has taken everything before them. */
interface CloseFrames {
  readonly code: number
  readonly reason: string
  readonly sinceMillis: number
}

class UwsHotSocket extends FrontSocket implements Watched {
  private readonly state: FrontState
  private native: UwsWebSocket | undefined
  private open: ((socket: HotSocket) => HotSocketListener) | undefined
  private farewell: CloseFrames | undefined

  constructor(setup: UwsSocketSetup, open: (socket: HotSocket) => HotSocketListener) {
    super(setup)
    this.state = setup.state
    this.open = open
  }

  opened(native: UwsWebSocket): void {
    const { open } = this
    this.native = native
    this.open = undefined
    if (open !== undefined) this.begin(open)
  }

  message(message: ArrayBuffer, isBinary: boolean): void {
    this.receive(Buffer.from(message), isBinary)
  }

  writable(): void {
    if (this.farewell === undefined) this.drained()
    else if (this.waitingBytes === 0) this.native?.end(this.farewell.code, this.farewell.reason)
  }

  /** The addon's handle is invalid from here on. */
  ended(code: number): void {
    this.native = undefined
    if (this.farewell !== undefined) this.state.unwatch(this)
    this.gone(code)
  }

  check(nowMillis: number): void {
    if (this.farewell === undefined) return
    if (nowMillis - this.farewell.sinceMillis >= this.state.limits.webSocketLingerMillis) this.drop()
  }

  drop(): void {
    this.native?.close()
  }

  protected get waitingBytes(): number {
    return this.native?.getBufferedAmount() ?? 0
  }

  protected write(text: string): boolean {
    return this.native === undefined || this.native.send(text, false) === sent
  }

  /** The addon would let a client take its time with what waits, for ever. */
  protected end(code: number, reason: string): void {
    if (this.waitingBytes === 0) return this.native?.end(code, reason)
    this.farewell = { code, reason, sinceMillis: performance.now() }
    this.state.watch(this)
  }
}

const hotSocketOf = (socket: UwsWebSocket): UwsHotSocket | undefined => {
  const userData = socket.getUserData()
  return "hot" in userData && userData.hot instanceof UwsHotSocket ? userData.hot : undefined
}
