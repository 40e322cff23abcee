import type { IncomingMessage, ServerResponse } from "node:http"
import { canonicalAddress, type ClientAddress } from "../ClientAddress.ts"
import { failuresOf, type HotFailures, jsonType, retrySoon } from "../FrontAnswer.ts"
import type { FrontLimits } from "../FrontOptions.ts"
import { attempt, type HotContext, isWritable } from "../HotAnswer.ts"
import type { BodyOwner } from "../ByteBudget.ts"
import type { HotReply, HotRequest, HotRoute, HotStream } from "../HotRoute.ts"
import { NodeStream } from "./NodeStream.ts"
import { deadStream } from "../PieceStream.ts"
import { statusLine } from "../StatusLine.ts"

type Headers = ReadonlyArray<readonly [string, string]>

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

/** One request of a hot route on Node's server; the counterpart of `UwsHotExchange`. */
export class NodeHotExchange implements HotRequest, HotReply {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly remoteAddress: string
  readonly isProxied: boolean
  aborted = false
  private readonly route: HotRoute
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private readonly context: NodeHotContext
  private chunks: Array<Buffer> = []
  private receivedBytes = 0
  private owner: BodyOwner | undefined
  /** of the owner's share */
  private takenBytes = 0
  /** answers in place of the handler, once the rest of the body is out of the way */
  private refusal: ((closes: boolean) => void) | undefined
  /** the route is refusing the body before it is whole */
  private isRefusing = false
  private isAnswered = false
  private streamed: NodeStream | undefined
  private abortListeners: Array<() => void> = []

  constructor(route: HotRoute, request: IncomingMessage, response: ServerResponse, context: NodeHotContext) {
    this.route = route
    this.request = request
    this.response = response
    this.context = context
    this.method = request.method ?? ""
    this.path = route.path
    this.query = splitTarget(request.url ?? "")[1]
    const raw = request.socket.remoteAddress ?? ""
    const peer = () => canonicalAddress(raw) ?? raw
    this.remoteAddress = context.clientAddress(peer, this.valueOf("x-forwarded-for"))
    this.isProxied = context.clientAddress.isProxied(peer)
  }

  /** Takes the body, then calls the handler. */
  begin(): void {
    const { request, response, route } = this
    request.on("data", (chunk: Buffer) => this.receive(chunk))
    request.on("end", () => this.complete())
    response.on("close", () => this.closed())
    this.context.arriving.set(response, () => this.tooSlow())
    const declared = Number(this.valueOf("content-length"))
    if (declared > route.maxBodyBytes) this.refuse(declared, this.tooLarge)
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
    return this.route.headers.includes(name) ? this.valueOf(name) : ""
  }

  send(status: number, headers: Headers, body?: string | Uint8Array): void {
    if (this.isRefusing) this.refuse(0, (closes) => this.write(status, headers, body ?? "", closes))
    else this.write(status, headers, body ?? "", false)
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

  onAbort(listener: () => void): void {
    if (this.aborted) listener()
    else this.abortListeners.push(listener)
  }

  /** After the answer, or instead of it. */
  private closed(): void {
    this.drop()
    this.context.streaming.delete(this.response)
    const isComplete = this.streamed === undefined ? this.isAnswered : this.streamed.pieces.isOver
    if (isComplete || this.aborted) return
    this.aborted = true
    this.streamed?.abort()
    for (const listener of this.abortListeners) attempt(listener, this.context)
  }

  private receive(chunk: Buffer): void {
    this.receivedBytes += chunk.length
    if (this.refusal !== undefined) {
      if (this.receivedBytes > this.context.limits.lingerBytes) this.refusal(true)
    } else if (this.receivedBytes > this.route.maxBodyBytes) this.refuse(0, this.tooLarge)
    else if (!this.isAnswered) this.hold(chunk)
  }

  private hold(chunk: Buffer): void {
    this.owner ??= this.context.held.ownerOf(this.route, this, (answer) => this.refuseUnread(answer))
    if (this.owner === undefined) return
    if (this.owner.shares.take(this.owner.name, chunk.length)) {
      this.takenBytes += chunk.length
      this.chunks.push(chunk)
    } else {
      const { overloaded } = this.failures
      this.refuse(0, (closes) =>
        this.write(overloaded.status, [jsonType, retrySoon], overloaded.body, closes)
      )
    }
  }

  private refuseUnread(answer: (reply: HotReply) => void): void {
    this.isRefusing = true
    attempt(() => answer(this), this.context)
    const { failed } = this.failures
    // It threw, or said nothing.
    if (this.refusal === undefined)
      this.refuse(0, (closes) => this.write(failed.status, [jsonType], failed.body, closes))
  }

  private complete(): void {
    this.context.arriving.delete(this.response)
    if (this.refusal !== undefined) return this.refusal(false)
    if (this.isAnswered) return
    try {
      const body = Buffer.concat(this.chunks)
      this.drop()
      this.route.handle(this, body, this)
    } catch (defect) {
      this.context.report(defect)
      const { failed } = this.failures
      // A stream that nothing will end.
      if (this.streamed?.pieces.isOver === false) this.response.destroy()
      else this.write(failed.status, [jsonType], failed.body, false)
    }
  }

  /** Answers once the rest of the body is out of the way; a reset could cost the client the answer. */
  private refuse(declaredBytes: number, answer: (closes: boolean) => void): void {
    this.refusal = answer
    this.drop()
    const { lingerBytes, lingerMillis } = this.context.limits
    if (declaredBytes > lingerBytes) return answer(true)
    const timer = setTimeout(() => answer(true), lingerMillis)
    this.response.once("close", () => clearTimeout(timer))
  }

  /** Held bytes of the body are released. */
  private drop(): void {
    this.chunks = []
    this.owner?.shares.release(this.owner.name, this.takenBytes)
    this.takenBytes = 0
  }

  private get failures(): HotFailures {
    return failuresOf(this.route.errors)
  }

  private readonly tooLarge = (closes: boolean): void => {
    const { bodyTooLarge } = this.failures
    this.write(bodyTooLarge.status, [jsonType], bodyTooLarge.body, closes)
  }

  private tooSlow(): void {
    const { bodyTooSlow } = this.failures
    this.drop()
    this.write(bodyTooSlow.status, [jsonType], bodyTooSlow.body, true)
  }

  private write(status: number, headers: Headers, body: string | Uint8Array, closes: boolean): void {
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
    return [...written, ...this.context.cors.answer(this.route.cors, this.valueOf("origin"))].flat()
  }

  private valueOf(name: string): string {
    const value = this.request.headers[name]
    return Array.isArray(value) ? value.join(", ") : (value ?? "")
  }
}
