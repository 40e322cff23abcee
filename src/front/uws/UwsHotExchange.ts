import type { UwsRequest, UwsResponse } from "./Addon.ts"
import { addressFromBytes } from "../ClientAddress.ts"
import type { FrontState } from "./FrontState.ts"
import { headerBytes } from "../HeaderText.ts"
import { attempt, type HotContext, isWritable } from "../HotAnswer.ts"
import { type Headers, HotExchange } from "../HotExchange.ts"
import type { HotHead } from "./HotHead.ts"
import { afterDispatch } from "./LastAnswer.ts"
import type { HotRoute, HotStream } from "../HotRoute.ts"
import { deadStream } from "../PieceStream.ts"
import { RequestBody } from "./RequestBody.ts"
import { UploadRate } from "./UploadRate.ts"
import { endWithoutBody } from "./ResponseHead.ts"
import { statusLine } from "../StatusLine.ts"
import { UwsStream } from "./UwsStream.ts"

const noBytes = new Uint8Array(0)

export class UwsHotExchange extends HotExchange<HotContext, UwsStream> {
  readonly method: string
  readonly query: string
  private readonly response: UwsResponse
  private readonly state: FrontState
  private readonly values: ReadonlyArray<string>
  private readonly origin: string
  private readonly forwardedFor: string
  private readonly declaredBytes: number
  private address: string | undefined
  private held: Array<Buffer> | undefined
  private heldBytes = 0
  private rate: UploadRate | undefined
  private refused: RequestBody | undefined
  /** answered, and the answer waits until the native callback is over: see `LastAnswer.ts` */
  private isWaiting = false
  private readonly isLast: boolean
  private isCorked = false

  constructor(
    route: HotRoute,
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
    this.values = head.values
    this.origin = head.origin
    this.forwardedFor = head.forwardedFor
    this.declaredBytes = Number(head.contentLength)
    this.isLast = head.isChunked || head.isLast
  }

  /** Takes the body, then calls the handler. */
  begin(): void {
    this.state.inFlight++
    this.response.onAborted(() => this.abort())
    this.response.onData((chunk, isLast) => this.receive(chunk, isLast))
    if (this.declaredBytes > this.route.maxBodyBytes)
      this.refuse((closes) => this.fail(this.failures.bodyTooLarge, closes))
  }

  /** As `begin`, for a handshake: it has no body, and may be made a WebSocket of before this returns. */
  beginHandshake(): void {
    this.state.inFlight++
    this.response.onAborted(() => this.abort())
    this.isCorked = true
    this.handle(noBytes)
    this.isCorked = false
  }

  /** From here on the socket belongs to a WebSocket. */
  upgrade(handshake: (response: UwsResponse) => void): void {
    if (this.aborted || this.isAnswered) return
    this.isAnswered = true
    if (this.isCorked) handshake(this.response)
    else this.state.late.upgrade(this.response, handshake)
    this.state.finished()
  }

  header(name: string): string {
    return this.values[this.route.headers.indexOf(name)] ?? ""
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

  private receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.refused !== undefined) return this.refused.receive(chunk, isLast)
    if (this.isAnswered) return
    this.isCorked = true
    if (isLast && this.held === undefined) {
      if (chunk.byteLength > this.route.maxBodyBytes) this.fail(this.failures.bodyTooLarge, false)
      else this.handle(new Uint8Array(chunk))
    } else this.hold(chunk, isLast)
    this.isCorked = false
  }

  private hold(chunk: ArrayBuffer, isLast: boolean): void {
    this.heldBytes += chunk.byteLength
    if (this.heldBytes > this.route.maxBodyBytes) {
      this.drop()
      if (isLast) this.fail(this.failures.bodyTooLarge, false)
      else this.refuse((closes) => this.fail(this.failures.bodyTooLarge, closes))
      return
    }
    const isTaken = this.takes(chunk.byteLength)
    if (isTaken === undefined) return
    if (!isTaken) {
      this.drop()
      const busy = (closes: boolean): void => this.fail(this.failures.overloaded, closes)
      return isLast ? busy(false) : this.refuse(busy)
    }
    this.held ??= []
    if (isLast) this.rate?.stop()
    else {
      const { minHotUploadBytesPerSecond } = this.state.limits
      this.rate ??= new UploadRate(this.response, this.state, minHotUploadBytesPerSecond, () =>
        this.tooSlow()
      )
      this.rate.count(chunk.byteLength)
    }
    // The chunk is detached when this returns.
    if (chunk.byteLength > 0) this.held.push(Buffer.from(Buffer.from(chunk)))
    if (!isLast) return
    const body = this.held.length === 0 ? noBytes : Buffer.concat(this.held)
    this.drop()
    this.handle(body)
  }

  protected override drop(): void {
    this.held = []
    this.rate?.stop()
    this.release()
  }

  protected override refuse(answer: (closes: boolean) => void): void {
    const declared = this.declaredBytes > 0 ? this.declaredBytes - this.heldBytes : undefined
    this.refused = new RequestBody(this.response, declared, this.state)
    this.refused.discard((outcome) => answer(outcome !== "Complete"))
  }

  protected override get isRefused(): boolean {
    return this.refused !== undefined
  }

  protected override cut(): void {
    this.response.close()
  }

  protected override write(
    status: number,
    headers: Headers,
    body: string | Uint8Array,
    closes: boolean
  ): void {
    if (this.aborted || this.isAnswered) return
    this.isAnswered = true
    if (this.isLast) return this.writeLast(() => this.writeWhole(status, headers, body, closes))
    if (this.isCorked) this.writeWhole(status, headers, body, closes)
    else this.response.cork(() => this.writeWhole(status, headers, body, closes))
    this.refused?.detach()
    this.state.finished()
  }

  private writeLast(write: () => void): void {
    this.isWaiting = true
    afterDispatch(() => {
      if (this.aborted) return
      this.isWaiting = false
      this.response.cork(write)
      this.refused?.detach()
      this.state.finished()
    })
  }

  private writeWhole(status: number, headers: Headers, body: string | Uint8Array, closes: boolean): void {
    const { response } = this
    this.writeHead(status, headers)
    const isClosing = closes || this.isLast || this.state.isDraining
    if (this.method !== "HEAD" && status !== 204 && status !== 304) response.end(body, isClosing)
    else {
      if (isClosing) response.writeHeader("Connection", "close")
      if (this.isLast) response.pause()
      endWithoutBody(response, this.method === "HEAD" ? String(Buffer.byteLength(body)) : undefined)
    }
  }

  private writeHead(status: number, headers: Headers): void {
    const { response, context, route } = this
    response.writeStatus(statusLine(status))
    for (const [name, value] of headers) {
      if (isWritable(name, value)) response.writeHeader(name, headerBytes(value))
    }
    for (const [name, value] of context.cors.answer(route.cors, this.origin))
      response.writeHeader(name, value)
  }

  private abort(): void {
    const isComplete =
      this.streamed === undefined ? this.isAnswered && !this.isWaiting : this.streamed.isComplete
    if (isComplete || this.aborted) return
    this.aborted = true
    this.drop()
    this.refused?.abort()
    this.streamed?.abort()
    this.state.finished()
    for (const listener of this.abortListeners ?? []) attempt(listener, this.context)
  }
}
