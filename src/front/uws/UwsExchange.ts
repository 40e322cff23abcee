import type { UwsRequest, UwsResponse } from "./Addon.ts"
import { addressFromBytes } from "../ClientAddress.ts"
import type { FrontState } from "./FrontState.ts"
import { HeaderBlock, type Headers } from "../HeaderBlock.ts"
import { isWritable } from "../HeaderText.ts"
import { attempt, type HotContext } from "../HotAnswer.ts"
import { type Ending, HotExchange, type ServedRoute } from "../HotExchange.ts"
import type { HotHead } from "./HotHead.ts"
import { afterDispatch } from "./LastAnswer.ts"
import type { HotStream } from "../HotRoute.ts"
import { deadStream } from "../PieceStream.ts"
import { endWithoutBody, headerLines } from "./ResponseHead.ts"
import { statusLine } from "../StatusLine.ts"
import { UwsStream } from "./UwsStream.ts"

/** Part of hot and raw exchanges on uWebSockets.js: the client's address, and the answer. */
export abstract class UwsExchange<Route extends ServedRoute> extends HotExchange<
  HotContext,
  UwsStream,
  Route
> {
  readonly method: string
  readonly query: string
  protected readonly response: UwsResponse
  protected readonly state: FrontState
  protected readonly origin: string
  protected readonly declaredBytes: number
  /** nothing behind this request may be served: see `LastAnswer.ts` */
  protected readonly isLast: boolean
  /** answered, and the answer waits until the native callback is over: see `LastAnswer.ts` */
  protected isWaiting = false
  protected isCorked = false
  /** for the answer to HEAD, where its body is not at hand */
  protected headLength: number | undefined
  private readonly forwardedFor: string
  private address: string | undefined

  constructor(
    route: Route,
    response: UwsResponse,
    request: UwsRequest,
    head: Readonly<HotHead>,
    context: HotContext,
    state: FrontState
  ) {
    super(route, context)
    this.response = response
    this.state = state
    this.method = request.getCaseSensitiveMethod()
    this.query = request.getQuery() ?? ""
    this.origin = head.origin
    this.forwardedFor = head.forwardedFor
    this.declaredBytes = Number(head.contentLength)
    this.isLast = head.isChunked || head.isLast
  }

  get remoteAddress(): string {
    const { clientAddress } = this.state
    this.address ??=
      clientAddress === undefined ? this.peer() : clientAddress(() => this.peer(), this.forwardedFor)
    return this.address
  }

  get isProxied(): boolean {
    return this.state.clientAddress?.isProxied(() => this.peer()) ?? false
  }

  private peer(): string {
    const isOver = this.aborted || this.isAnswered
    return isOver ? "" : addressFromBytes(new Uint8Array(this.response.getRemoteAddress()))
  }

  stream(status: number, headers: Headers): HotStream {
    if (this.method === "HEAD") this.send(status, headers)
    if (this.aborted || this.isAnswered) return deadStream
    this.isAnswered = true
    this.streamed = new UwsStream(this.response, this.state, this.isLast, {
      writeHead: () => {
        this.writeHead(status, headers)
        if (this.isLast || this.state.isDraining) this.response.writeHeader("Connection", "close")
      },
      ended: () => this.state.finished()
    })
    return this.streamed.pieces
  }

  protected override cut(): void {
    this.response.close()
  }

  protected override write(
    status: number,
    headers: Headers,
    body: string | Uint8Array,
    ending: Ending
  ): void {
    if (this.aborted || this.isAnswered) return
    this.isAnswered = true
    if (this.isLast) return this.writeLast(() => this.writeWhole(status, headers, body, ending))
    if (this.isCorked) this.writeWhole(status, headers, body, ending)
    else this.response.cork(() => this.writeWhole(status, headers, body, ending))
    this.leaveBody()
    this.state.finished()
  }

  /** The socket is answered, and must not be touched through its body any more. */
  protected abstract leaveBody(): void

  /** The client is gone. */
  protected abstract abortBody(): void

  private writeLast(write: () => void): void {
    this.isWaiting = true
    afterDispatch(() => {
      if (this.aborted) return
      this.isWaiting = false
      this.response.cork(write)
      this.leaveBody()
      this.state.finished()
    })
  }

  private writeWhole(status: number, headers: Headers, body: string | Uint8Array, ending: Ending): void {
    const { response } = this
    this.writeHead(status, headers)
    const isClosing = ending !== "keep" || this.isLast || this.state.isDraining
    if (this.method !== "HEAD" && status !== 204 && status !== 304) {
      if (ending === "announce") response.writeHeader("Connection", "close").end(body)
      else response.end(body, isClosing)
    } else {
      if (isClosing) response.writeHeader("Connection", "close")
      if (this.isLast) response.pause()
      const length = this.headLength ?? Buffer.byteLength(body)
      endWithoutBody(response, this.method === "HEAD" ? String(length) : undefined)
    }
  }

  protected writeHead(status: number, headers: Headers): void {
    const { response, context, route } = this
    response.writeStatus(statusLine(status))
    for (const header of headers) {
      if (header instanceof HeaderBlock) headerLines.addBlock(response, header)
      else if (isWritable(header[0], header[1])) headerLines.add(response, header[0], header[1])
    }
    for (const [name, value] of context.cors.answer(route.cors, this.origin))
      headerLines.add(response, name, value)
    headerLines.write(response)
  }

  /** With the native code, which must not be asked for anything more. */
  protected get isComplete(): boolean {
    return this.streamed === undefined ? this.isAnswered && !this.isWaiting : this.streamed.isComplete
  }

  protected abort(): void {
    if (this.isComplete || this.aborted) return
    this.aborted = true
    this.drop()
    this.abortBody()
    this.streamed?.abort()
    this.state.finished()
    for (const listener of this.abortListeners ?? []) attempt(listener, this.context)
  }
}
