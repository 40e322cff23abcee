import type { IncomingMessage, ServerResponse } from "node:http"
import { canonicalAddress, type ClientAddress } from "./ClientAddress.ts"
import { bodyTooLarge, failed, jsonType, overloaded, retrySoon } from "./FrontAnswer.ts"
import type { FrontLimits } from "./FrontOptions.ts"
import { type HotContext, isWritable } from "./HotAnswer.ts"
import type { HotReply, HotRequest, HotRoute } from "./HotRoute.ts"
import { statusLine } from "./StatusLine.ts"

type Headers = ReadonlyArray<readonly [string, string]>

/** What hot routes on Node's server share. */
export interface NodeHotContext extends HotContext {
  readonly limits: FrontLimits
  readonly clientAddress: ClientAddress
}

/** The path and what follows its `?`, of a request target in origin or absolute form. */
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
  aborted = false
  private readonly route: HotRoute
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private readonly context: NodeHotContext
  private chunks: Array<Buffer> = []
  private receivedBytes = 0
  /** of `context.held` */
  private takenBytes = 0
  private isRefused = false
  private isAnswered = false

  constructor(route: HotRoute, request: IncomingMessage, response: ServerResponse, context: NodeHotContext) {
    this.route = route
    this.request = request
    this.response = response
    this.context = context
    this.method = request.method ?? ""
    this.path = route.path
    this.query = splitTarget(request.url ?? "")[1]
    const peer = request.socket.remoteAddress ?? ""
    this.remoteAddress = context.clientAddress(
      () => canonicalAddress(peer) ?? peer,
      this.valueOf("x-forwarded-for")
    )
  }

  /** Takes the body, then calls the handler. */
  begin(): void {
    const { request, response, route } = this
    request.on("data", (chunk: Buffer) => this.receive(chunk))
    request.on("end", () => this.complete())
    response.on("close", () => {
      this.drop()
      this.aborted ||= !this.isAnswered
    })
    const declared = Number(this.valueOf("content-length"))
    if (declared > route.maxBodyBytes) this.refuse(declared)
  }

  header(name: string): string {
    return this.route.headers.includes(name) ? this.valueOf(name) : ""
  }

  send(status: number, headers: Headers, body?: string | Uint8Array): void {
    this.write(status, headers, body ?? "", false)
  }

  private receive(chunk: Buffer): void {
    this.receivedBytes += chunk.length
    if (this.isRefused) {
      if (this.receivedBytes > this.context.limits.lingerBytes) this.answerTooLarge(true)
    } else if (this.receivedBytes > this.route.maxBodyBytes) this.refuse(0)
    else if (this.isAnswered) return
    else if (this.context.held.take(chunk.length)) {
      this.takenBytes += chunk.length
      this.chunks.push(chunk)
    } else {
      this.drop()
      this.write(overloaded.status, [jsonType, retrySoon], overloaded.body, true)
    }
  }

  private complete(): void {
    if (this.isRefused) return this.answerTooLarge(false)
    if (this.isAnswered) return
    try {
      const body = Buffer.concat(this.chunks)
      this.drop()
      this.route.handle(this, body, this)
    } catch (defect) {
      this.context.report(defect)
      this.write(failed.status, [jsonType], failed.body, false)
    }
  }

  /** Answers 413 once the rest of the body is out of the way; a reset could cost the client the answer. */
  private refuse(declaredBytes: number): void {
    this.isRefused = true
    this.drop()
    const { lingerBytes, lingerMillis } = this.context.limits
    if (declaredBytes > lingerBytes) return this.answerTooLarge(true)
    const timer = setTimeout(() => this.answerTooLarge(true), lingerMillis)
    this.response.once("close", () => clearTimeout(timer))
  }

  /** What was held of the body is no longer. */
  private drop(): void {
    this.chunks = []
    this.context.held.release(this.takenBytes)
    this.takenBytes = 0
  }

  private answerTooLarge(closes: boolean): void {
    this.write(bodyTooLarge.status, [jsonType], bodyTooLarge.body, closes)
  }

  private write(status: number, headers: Headers, body: string | Uint8Array, closes: boolean): void {
    if (this.aborted || this.isAnswered) return
    this.isAnswered = true
    const { response, context, route } = this
    const written = headers.filter(([name, value]) => isWritable(name, value))
    const all = [...written, ...context.cors.answer(route.cors, this.valueOf("origin"))].flat()
    if (closes) all.push("Connection", "close")
    if (status !== 204 && status !== 304) all.push("Content-Length", String(Buffer.byteLength(body)))
    response.writeHead(status, statusLine(status).slice(4), all)
    response.end(this.method === "HEAD" || status === 204 || status === 304 ? undefined : body)
  }

  private valueOf(name: string): string {
    const value = this.request.headers[name]
    return Array.isArray(value) ? value.join(", ") : (value ?? "")
  }
}
