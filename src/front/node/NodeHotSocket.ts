import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { type WebSocket, WebSocketServer } from "ws"
import { FrontSocket, type SocketSetup } from "../FrontSocket.ts"
import type { HotRoute } from "../HotRoute.ts"
import type { HotHandshake, HotSocket, HotSocketListener, HotSocketRoute } from "../HotSocket.ts"
import type { NodeHotContext } from "./NodeExchange.ts"
import { NodeHotExchange } from "./NodeHotExchange.ts"
import type { OpenSocket } from "../OpenSockets.ts"

/** A route's sockets on Node's server, over ws. */
export interface NodeSocketSetup extends SocketSetup {
  readonly context: NodeHotContext
  readonly server: WebSocketServer
}

export const setupOf = (route: HotSocketRoute, context: NodeHotContext): NodeSocketSetup => {
  const { limits } = context
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // A message too long for the route is refused by the front, as on the other engine.
    maxPayload: 2 * route.maxFrameBytes,
    // Not in the types of ws, whose newest are older than it.
    closeTimeout: limits.webSocketLingerMillis,
    handleProtocols: () => false as const
  }
  return { route, context, limits, server: new WebSocketServer(options) }
}

/** A connection that Node has let go of after the head of a handshake, until it is answered. */
export class NodeHandshake implements HotHandshake, OpenSocket {
  private readonly setup: NodeSocketSetup
  private readonly request: IncomingMessage
  private readonly socket: Socket
  private readonly head: Buffer
  private readonly response: ServerResponse
  private readonly exchange: NodeHotExchange

  constructor(
    setup: NodeSocketSetup,
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    response: ServerResponse
  ) {
    const { path, headers } = setup.route
    this.setup = setup
    this.request = request
    this.socket = socket
    this.head = head
    this.response = response
    const route: HotRoute = {
      method: "GET",
      path,
      maxBodyBytes: 0,
      headers,
      cors: "configured",
      handle: (hotRequest) => setup.route.upgrade(hotRequest, this)
    }
    this.exchange = new NodeHotExchange(route, request, response, setup.context)
  }

  /** Calls the route. `response` becomes the answer unless a WebSocket does. */
  begin(): void {
    const { response, socket } = this
    this.setup.context.open.add(this)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.once("finish", () => socket.destroySoon())
    // The socket has no other listener. Its client has nothing to say before the answer.
    socket.on("error", this.drop)
    socket.on("end", this.drop)
    socket.on("data", this.drop)
    socket.once("close", this.gone)
    this.exchange.beginHandshake()
  }

  get aborted(): boolean {
    return this.exchange.aborted
  }

  accept(open: (socket: HotSocket) => HotSocketListener): void {
    if (!this.exchange.upgrade()) return
    const { setup, socket } = this
    socket.off("end", this.drop)
    socket.off("data", this.drop)
    setup.server.handleUpgrade(this.request, socket, this.head, (native) => {
      socket.off("error", this.drop)
      const hot = new NodeHotSocket(setup, native)
      hot.opened(open)
      this.gone()
    })
  }

  refuse(status: number, headers: ReadonlyArray<readonly [string, string]>, body: string): void {
    this.exchange.send(status, headers, body)
  }

  onAbort(listener: () => void): void {
    this.exchange.onAbort(listener)
  }

  /** At the end of a drain there is no client left to answer. */
  close(): void {
    this.drop()
  }

  readonly drop = (): void => void this.socket.destroy()

  private readonly gone = (): void => {
    this.socket.off("close", this.gone)
    this.setup.context.open.remove(this)
  }
}

class NodeHotSocket extends FrontSocket {
  private readonly native: WebSocket
  private hasWaited = false

  constructor(setup: NodeSocketSetup, native: WebSocket) {
    super(setup)
    this.native = native
  }

  opened(open: (socket: HotSocket) => HotSocketListener): void {
    const { native } = this
    native.on("message", (data, isBinary) => {
      if (Buffer.isBuffer(data)) this.receive(data, isBinary)
    })
    // Always followed by `close`, with the code.
    native.on("error", () => native.terminate())
    native.on("close", (code) => this.gone(code))
    this.begin(open)
  }

  drop(): void {
    this.native.terminate()
  }

  protected get waitingBytes(): number {
    return this.native.bufferedAmount
  }

  protected write(text: string): boolean {
    this.native.send(text, this.written)
    const isTaken = this.waitingBytes === 0
    this.hasWaited ||= !isTaken
    return isTaken
  }

  protected end(code: number, reason: string): void {
    this.native.close(code, reason)
  }

  private readonly written = (): void => {
    if (!this.hasWaited || this.waitingBytes > 0) return
    this.hasWaited = false
    this.drained()
  }
}
