import type { IncomingMessage, ServerResponse } from "node:http"
import { canonicalAddress, type ClientAddress } from "../ClientAddress.ts"
import type { FrontLimits } from "../FrontOptions.ts"
import { attempt, type HotContext } from "../HotAnswer.ts"
import { type Headers, listed } from "../HeaderBlock.ts"
import { isWritable } from "../HeaderText.ts"
import { type Ending, HotExchange, type ServedRoute } from "../HotExchange.ts"
import type { HotStream } from "../HotRoute.ts"
import { NodeStream } from "./NodeStream.ts"
import { deadStream } from "../PieceStream.ts"
import { statusLine } from "../StatusLine.ts"

/** The shared part of hot routes on Node's server. */
export interface NodeHotContext extends HotContext {
  readonly limits: FrontLimits
  readonly clientAddress: ClientAddress
  /** answers that come in pieces and have not ended */
  readonly streaming: WeakSet<ServerResponse>
  /** requests of hot and raw routes whose bodies are arriving */
  readonly arriving: WeakMap<ServerResponse, Arriving>
}

/** A body that is arriving: how fast it has to be, and what ends it where it is not. */
interface Arriving {
  readonly minBytesPerSecond: number
  /** false while the client is made to wait, which is no fault of its own */
  readonly isAwaited: boolean
  tooSlow(): void
}

/** The path and the query behind its `?`, of a request target in origin or absolute form. */
export const splitTarget = (target: string): readonly [path: string, query: string] => {
  const origin = target.startsWith("/") ? target : target.replace(/^[a-z]+:\/\/[^/?]*/i, "")
  const mark = origin.indexOf("?")
  return mark < 0 ? [origin, ""] : [origin.slice(0, mark), origin.slice(mark + 1)]
}

/** Part of hot and raw exchanges on Node's server: the client's address, and the answer. */
export abstract class NodeExchange<Route extends ServedRoute> extends HotExchange<
  NodeHotContext,
  NodeStream,
  Route
> {
  readonly method: string
  readonly query: string
  readonly remoteAddress: string
  readonly isProxied: boolean
  protected readonly request: IncomingMessage
  protected readonly response: ServerResponse
  /** for the answer to HEAD, where its body is not at hand */
  protected headLength: number | undefined

  constructor(route: Route, request: IncomingMessage, response: ServerResponse, context: NodeHotContext) {
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

  stream(status: number, headers: Headers): HotStream {
    if (this.method === "HEAD") this.send(status, headers)
    if (this.aborted || this.isAnswered) return deadStream
    this.isAnswered = true
    const { response, context } = this
    context.streaming.add(response)
    this.streamed = new NodeStream(response, context.limits.stalledStreamMillis, () =>
      this.writeHead(status, headers, [])
    )
    return this.streamed.pieces
  }

  /** given in full, as far as this side is concerned */
  protected get isComplete(): boolean {
    return this.streamed === undefined ? this.isAnswered : this.streamed.pieces.isOver
  }

  /** After the answer, or instead of it. */
  protected closed(): void {
    this.drop()
    this.context.streaming.delete(this.response)
    if (this.isComplete || this.aborted) return
    this.aborted = true
    this.abortBody()
    this.streamed?.abort()
    for (const listener of this.abortListeners ?? []) attempt(listener, this.context)
  }

  /** The client is gone. */
  protected abortBody(): void {}

  protected override cut(): void {
    this.response.destroy()
  }

  protected override write(
    status: number,
    headers: Headers,
    body: string | Uint8Array,
    ending: Ending
  ): void {
    if (this.aborted || this.isAnswered) return
    this.isAnswered = true
    const isBare = status === 204 || status === 304
    const more = ending === "keep" ? [] : ["Connection", "close"]
    if (!isBare) more.push("Content-Length", String(this.headLength ?? Buffer.byteLength(body)))
    this.writeHead(status, headers, more)
    // Node would write the head in the encoding of a string.
    this.response.end(this.method === "HEAD" || isBare ? undefined : bytesOf(body))
  }

  protected writeHead(status: number, headers: Headers, more: ReadonlyArray<string>): void {
    const written = listed(headers).filter(([name, value]) => isWritable(name, value))
    const cors = this.context.cors.answer(this.route.cors, this.headerValue("origin"))
    this.response.writeHead(status, statusLine(status).slice(4), [...written.flat(), ...cors.flat(), ...more])
  }

  protected headerValue(name: string): string {
    const value = this.request.headers[name]
    return Array.isArray(value) ? value.join(", ") : (value ?? "")
  }
}

const bytesOf = (body: string | Uint8Array): Uint8Array =>
  typeof body === "string" ? Buffer.from(body) : body
