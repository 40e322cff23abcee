import { type IncomingMessage, Server, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { badRequest, type FrontAnswer, jsonType, notFound } from "../FrontAnswer.ts"
import type { FrontLimits } from "../FrontOptions.ts"
import { refusalOf } from "../HotAnswer.ts"
import { type NodeHotContext, splitTarget } from "./NodeExchange.ts"
import { NodeHotExchange } from "./NodeHotExchange.ts"
import { setupOf, NodeHandshake, type NodeSocketSetup } from "./NodeHotSocket.ts"
import { NodeRawExchange } from "./NodeRawExchange.ts"
import type { HotPath } from "../HotRoute.ts"
import { isChunkedAlone } from "../RequestHead.ts"
import { statusLine } from "../StatusLine.ts"
import { isHandshake } from "../WebSocketHandshake.ts"

/** A request that has not been answered, and how fast its body has been coming. */
interface InFlight {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  windowStart: number
  windowBytes: number
}

/**
 * Node's HTTP server with the front's policies: hot routes are taken out before the Effect app is asked, and clients
 * that send or read too slowly are dropped.
 */
export class NodeFrontServer extends Server {
  private readonly hot: NodeHotContext
  private readonly limits: FrontLimits
  private readonly setups: ReadonlyMap<string, NodeSocketSetup>
  private readonly inFlight = new Map<Socket, InFlight>()
  /** a request on them was refused as ambiguous: nothing behind it is served */
  private readonly refused = new WeakSet<Socket>()
  private isDraining = false
  private drained: (() => void) | undefined
  private readonly timer: ReturnType<typeof setInterval>

  constructor(context: NodeHotContext) {
    const { limits } = context
    super({
      maxHeaderSize: limits.maxHeaderBytes,
      // Node's own refusal would have the next request served.
      requireHostHeader: false,
      headersTimeout: limits.headerTimeoutMillis,
      // Slow bodies are judged by their rate, not by one deadline for every size.
      requestTimeout: 0,
      keepAliveTimeout: limits.keepAliveMillis,
      connectionsCheckingInterval: Math.min(1000, limits.headerTimeoutMillis / 4)
    })
    this.hot = context
    this.limits = limits
    this.setups = new Map(context.sockets.map((route) => [route.path, setupOf(route, context)]))
    this.maxConnections = limits.maxConnections
    this.setTimeout(limits.stalledReaderMillis)
    this.on("timeout", (socket: Socket) => this.idle(socket))
    this.timer = setInterval(() => this.sweep(), Math.min(1000, limits.slowUploadWindowMillis / 4))
    this.once("close", () => clearInterval(this.timer))
  }

  /** No new connections, and every answer closes its own. Calls back once nothing is in flight; WebSockets are not. */
  drain(idle: () => void): void {
    this.isDraining = true
    for (const { response } of this.inFlight.values()) response.shouldKeepAlive = false
    this.close()
    this.drained = idle
    if (this.inFlight.size === 0) idle()
  }

  override emit(event: string, ...args: ReadonlyArray<unknown>): boolean {
    const [request, response] = args
    if (isRequest(request) && this.refuses(request, response)) return true
    if ((event === "request" || event === "checkContinue") && isRequest(request) && isResponse(response)) {
      this.track(request, response)
      if (this.takeHot(request, response, event === "checkContinue")) return true
    }
    const [, socket, head] = args
    if (event === "upgrade" && isRequest(request) && socket instanceof Socket && Buffer.isBuffer(head)) {
      if (this.takeUpgrade(request, socket, head)) return true
    }
    return super.emit(event, ...args)
  }

  private refuses(request: IncomingMessage, response: unknown): boolean {
    const { socket } = request
    if (this.refused.has(socket)) return true
    if (!isAmbiguous(request)) return false
    this.refused.add(socket)
    if (isResponse(response)) answer(response, badRequest, [["Connection", "close"]])
    else socket.destroy()
    return true
  }

  private track(request: IncomingMessage, response: ServerResponse): void {
    if (this.isDraining) response.shouldKeepAlive = false
    const { socket } = request
    this.inFlight.set(socket, {
      request,
      response,
      windowStart: performance.now(),
      windowBytes: socket.bytesRead
    })
    response.once("close", () => {
      if (this.inFlight.get(socket)?.response === response) this.inFlight.delete(socket)
      if (this.inFlight.size === 0) this.drained?.()
    })
  }

  /** False where the path is not a hot socket's. */
  private takeUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): boolean {
    const setup = this.setups.get(splitTarget(request.url ?? "")[0])
    if (setup === undefined) return false
    const response = new ServerResponse(request)
    if (request.method === "GET" && isHandshake((name) => String(request.headers[name] ?? ""))) {
      new NodeHandshake(setup, request, socket, head, response).begin()
      return true
    }
    // Node has let go of the connection, so that it cannot serve another request.
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.once("finish", () => socket.destroySoon())
    return this.takeHot(request, response, false)
  }

  private takeHot(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): boolean {
    const { paths } = this.hot
    const [path] = splitTarget(request.url ?? "")
    const method = request.method ?? ""
    const route = paths.find(method, path)
    if (route !== undefined) {
      if (expectsContinue) response.writeContinue()
      new NodeHotExchange(route, request, response, this.hot).begin()
      return true
    }
    const there = paths.at(path)
    if (there !== undefined) {
      this.answerThere(there, paths.allow(path) ?? "", request, response)
      return true
    }
    const raw = paths.raw(path)
    if (raw !== undefined) {
      const served = raw.there.find(method)
      if (served === undefined && raw.there.isShared) return false
      const routed = served && { route: served, params: raw.params }
      if (routed === undefined) this.answerThere(raw.there, raw.there.allow, request, response)
      else new NodeRawExchange(routed, request, response, this.hot, expectsContinue).begin()
      return true
    }
    if (!paths.isVariant(path)) return false
    answer(response, notFound, [])
    return true
  }

  /** To a path of hot or raw routes, none of which has the method. */
  private answerThere(
    there: HotPath,
    allow: string,
    request: IncomingMessage,
    response: ServerResponse
  ): void {
    const { cors } = this.hot
    const { method = "" } = request
    const origin = request.headers.origin ?? ""
    if (method === "OPTIONS") {
      const wanted = String(request.headers["access-control-request-headers"] ?? "")
      response.writeHead(204, cors.preflight(there.cors, origin, wanted, allow).flat()).end()
    } else {
      const [refusal, headers] = refusalOf(there, method, allow)
      answer(response, refusal, [...headers, ...cors.answer(there.cors, origin)])
    }
  }

  /**
   * A socket without activity for `stalledReaderMillis`, or for `keepAliveMillis` between requests. A quiet handler is
   * no reason to drop a client; a client that takes nothing is. Streamed answers of hot routes have a limit of their own.
   */
  private idle(socket: Socket): void {
    const flight = this.inFlight.get(socket)
    if (flight !== undefined && this.hot.streaming.has(flight.response)) return
    if (flight === undefined || socket.writableLength > 0) socket.destroy()
  }

  private sweep(): void {
    const now = performance.now()
    for (const [socket, flight] of this.inFlight) {
      const { request } = flight
      const arriving = this.hot.arriving.get(flight.response)
      const isHeldBack =
        arriving?.isAwaited === false || request.readableLength >= request.readableHighWaterMark
      const elapsed = now - flight.windowStart
      if (request.complete || (!isHeldBack && elapsed < this.limits.slowUploadWindowMillis)) continue
      const bytes = socket.bytesRead - flight.windowBytes
      const least = arriving?.minBytesPerSecond ?? this.limits.minUploadBytesPerSecond
      if (!isHeldBack && bytes < (least * elapsed) / 1000) {
        if (arriving === undefined || flight.response.headersSent) socket.destroy()
        else arriving.tooSlow()
      }
      flight.windowStart = now
      flight.windowBytes = socket.bytesRead
    }
  }
}

/** The ambiguous requests (`RequestHead`) that Node's parser lets pass. */
const isAmbiguous = ({ httpVersion, rawHeaders }: IncomingMessage): boolean => {
  let hosts = 0
  let codings = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ""
    if (name.length === 4 && name.toLowerCase() === "host") hosts++
    else if (name.length === 17 && name.toLowerCase() === "transfer-encoding") {
      codings++
      if (!isChunkedAlone(rawHeaders[index + 1] ?? "")) return true
    }
  }
  if (httpVersion === "1.0") return hosts > 1 || codings > 0
  return hosts !== 1 || codings > 1
}

const isRequest = (value: unknown): value is IncomingMessage =>
  typeof value === "object" && value !== null && "httpVersion" in value

const isResponse = (value: unknown): value is ServerResponse =>
  typeof value === "object" && value !== null && "writeHead" in value

const answer = (
  response: ServerResponse,
  { status, body }: FrontAnswer,
  headers: ReadonlyArray<readonly [string, string]>
): void => {
  const length = String(Buffer.byteLength(body))
  response.writeHead(
    status,
    statusLine(status).slice(4),
    [jsonType, ...headers, ["Content-Length", length]].flat()
  )
  response.end(response.req.method === "HEAD" ? undefined : body)
}
