import type { IncomingMessage, ServerResponse } from "node:http"
import { canonicalAddress, type ClientAddress } from "../ClientAddress.ts"
import type { FrontLimits } from "../FrontOptions.ts"
import { attempt, type HotContext, isWritable } from "../HotAnswer.ts"
import { type Headers, HotExchange } from "../HotExchange.ts"
import type { HotRoute, HotStream } from "../HotRoute.ts"
import { NodeStream } from "./NodeStream.ts"
import { deadStream } from "../PieceStream.ts"
import { statusLine } from "../StatusLine.ts"

/** The shared part of hot routes on Node's server. */
export interface NodeHotContext extends HotContext {
  readonly limits: FrontLimits
  readonly clientAddress: ClientAddress
  /** answers that come in pieces and have not ended */
  readonly streaming: WeakSet<ServerResponse>
  /** requests whose bodies are arriving, and how each is ended where that takes too long */
  readonly arriving: WeakMap<ServerResponse, () => void>
}

/** The path and the query behind its `?`, of a request target in origin or absolute form. */
export const splitTarget = (target: string): readonly [path: string, query: string] => {
  const origin = target.startsWith("/") ? target : target.replace(/^[a-z]+:\/\/[^/?]*/i, "")
  const mark = origin.indexOf("?")
  return mark < 0 ? [origin, ""] : [origin.slice(0, mark), origin.slice(mark + 1)]
}

/** On Node's server; the counterpart of `UwsHotExchange`. */
export class NodeHotExchange extends HotExchange<NodeHotContext, NodeStream> {
  readonly method: string
  readonly query: string
  readonly remoteAddress: string
  readonly isProxied: boolean
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private chunks: Array<Buffer> = []
  private receivedBytes = 0
  /** answers in place of the handler, once the rest of the body is out of the way */
  private refusal: ((closes: boolean) => void) | undefined

  constructor(route: HotRoute, request: IncomingMessage, response: ServerResponse, context: NodeHotContext) {
    super(route, context)
    this.request = request
    this.response = response
    this.method = request.method ?? ""
    this.query = splitTarget(request.url ?? "")[1]
    const raw = request.socket.remoteAddress ?? ""
    const peer = () => canonicalAddress(raw) ?? raw
    this.remoteAddress = context.clientAddress(peer, this.headerValue("x-forwarded-for"))
    this.isProxied = context.clientAddress.isProxied(peer)
  }

  /** Takes the body, then calls the handler. */
  begin(): void {
    const { request, response, route } = this
    request.on("data", (chunk: Buffer) => this.receive(chunk))
    request.on("end", () => this.complete())
    response.on("close", () => this.closed())
    this.context.arriving.set(response, () => this.tooSlow())
    const declared = Number(this.headerValue("content-length"))
    if (declared > route.maxBodyBytes) this.refuse(this.tooLarge, declared)
  }

  /** As `begin`, for a handshake, which has no body. */
  beginHandshake(): void {
    this.response.on("close", () => this.closed())
    this.complete()
  }

  /** From here on the socket belongs to a WebSocket; false where it cannot any more. */
  upgrade(): boolean {
    if (this.aborted || this.isAnswered) return false
    this.isAnswered = true
    this.response.detachSocket(this.request.socket)
    return true
  }

  header(name: string): string {
    return this.route.headers.includes(name) ? this.headerValue(name) : ""
  }

  stream(status: number, headers: Headers): HotStream {
    if (this.method === "HEAD") this.send(status, headers)
    if (this.aborted || this.isAnswered) return deadStream
    this.isAnswered = true
    const { response, context } = this
    context.streaming.add(response)
    this.streamed = new NodeStream(response, context.limits.stalledStreamMillis, () =>
      response.writeHead(status, statusLine(status).slice(4), this.headersOf(headers))
    )
    return this.streamed.pieces
  }

  /** After the answer, or instead of it. */
  private closed(): void {
    this.drop()
    this.context.streaming.delete(this.response)
    const isComplete = this.streamed === undefined ? this.isAnswered : this.streamed.pieces.isOver
    if (isComplete || this.aborted) return
    this.aborted = true
    this.streamed?.abort()
    for (const listener of this.abortListeners ?? []) attempt(listener, this.context)
  }

  private receive(chunk: Buffer): void {
    this.receivedBytes += chunk.length
    if (this.refusal !== undefined) {
      if (this.receivedBytes > this.context.limits.lingerBytes) this.refusal(true)
    } else if (this.receivedBytes > this.route.maxBodyBytes) this.refuse(this.tooLarge)
    else if (!this.isAnswered) this.hold(chunk)
  }

  private hold(chunk: Buffer): void {
    const isTaken = this.takes(chunk.length)
    if (isTaken === true) this.chunks.push(chunk)
    else if (isTaken === false) this.refuse((closes) => this.fail(this.failures.overloaded, closes))
  }

  private complete(): void {
    this.context.arriving.delete(this.response)
    if (this.refusal !== undefined) return this.refusal(false)
    if (this.isAnswered) return
    const body = Buffer.concat(this.chunks)
    this.drop()
    this.handle(body)
  }

  protected override refuse(answer: (closes: boolean) => void, declaredBytes = 0): void {
    this.refusal = answer
    this.drop()
    const { lingerBytes, lingerMillis } = this.context.limits
    if (declaredBytes > lingerBytes) return answer(true)
    const timer = setTimeout(() => answer(true), lingerMillis)
    this.response.once("close", () => clearTimeout(timer))
  }

  protected override drop(): void {
    this.chunks = []
    this.release()
  }

  protected override get isRefused(): boolean {
    return this.refusal !== undefined
  }

  protected override cut(): void {
    this.response.destroy()
  }

  private readonly tooLarge = (closes: boolean): void => this.fail(this.failures.bodyTooLarge, closes)

  protected override write(
    status: number,
    headers: Headers,
    body: string | Uint8Array,
    closes: boolean
  ): void {
    if (this.aborted || this.isAnswered) return
    this.isAnswered = true
    const { response } = this
    const all = this.headersOf(headers)
    if (closes) all.push("Connection", "close")
    if (status !== 204 && status !== 304) all.push("Content-Length", String(Buffer.byteLength(body)))
    response.writeHead(status, statusLine(status).slice(4), all)
    response.end(this.method === "HEAD" || status === 204 || status === 304 ? undefined : body)
  }

  private headersOf(headers: Headers): Array<string> {
    const written = headers.filter(([name, value]) => isWritable(name, value))
    return [...written, ...this.context.cors.answer(this.route.cors, this.headerValue("origin"))].flat()
  }

  private headerValue(name: string): string {
    const value = this.request.headers[name]
    return Array.isArray(value) ? value.join(", ") : (value ?? "")
  }
}
