import type { UwsRequest, UwsResponse } from "./Addon.ts"
import { addressFromBytes } from "../ClientAddress.ts"
import { failuresOf, type FrontAnswer, type HotFailures, jsonType, retrySoon } from "../FrontAnswer.ts"
import type { FrontState } from "./FrontState.ts"
import { headerBytes } from "../HeaderText.ts"
import { attempt, type HotContext, isWritable } from "../HotAnswer.ts"
import type { HotHead } from "./HotHead.ts"
import { afterDispatch } from "./LastAnswer.ts"
import type { BodyOwner } from "../ByteBudget.ts"
import type { HotReply, HotRequest, HotRoute, HotStream } from "../HotRoute.ts"
import { deadStream } from "../PieceStream.ts"
import { RequestBody } from "./RequestBody.ts"
import { UploadRate } from "./UploadRate.ts"
import { endWithoutBody } from "./ResponseHead.ts"
import { statusLine } from "../StatusLine.ts"
import { UwsStream } from "./UwsStream.ts"

type Headers = ReadonlyArray<readonly [string, string]>

const errorHeaders: Headers = [jsonType]
const overloadedHeaders: Headers = [jsonType, retrySoon]
const noBytes = new Uint8Array(0)

/** One request of a hot route, from its first byte to its answer: request and reply of the handler in one object. */
export class UwsHotExchange implements HotRequest, HotReply {
  readonly method: string
  readonly query: string
  aborted = false
  private readonly response: UwsResponse
  private readonly route: HotRoute
  private readonly context: HotContext
  private readonly state: FrontState
  private readonly values: ReadonlyArray<string>
  private readonly origin: string
  private readonly forwardedFor: string
  private readonly declaredBytes: number
  private address: string | undefined
  private held: Array<Buffer> | undefined
  private heldBytes = 0
  /** once some of the body has to be kept */
  private owner: BodyOwner | undefined
  /** of the owner's share */
  private takenBytes = 0
  private rate: UploadRate | undefined
  private refused: RequestBody | undefined
  /** the route has refused the body before it was whole */
  private isRefusing = false
  private isAnswered = false
  /** answered, and the answer waits until the native callback is over: see `LastAnswer.ts` */
  private isWaiting = false
  private readonly isLast: boolean
  private isCorked = false
  private streamed: UwsStream | undefined
  private abortListeners: Array<() => void> | undefined

  constructor(
    route: HotRoute,
    response: UwsResponse,
    request: UwsRequest,
    head: Readonly<HotHead>,
    context: HotContext,
    state: FrontState
  ) {
    this.route = route
    this.response = response
    this.context = context
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

  get path(): string {
    return this.route.path
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

  send(status: number, headers: Headers, body?: string | Uint8Array): void {
    // The client is still sending where the body is refused unread: closing on it could cost it the answer.
    if (this.isRefusing) this.refuse((closes) => this.write(status, headers, body ?? "", closes))
    else this.write(status, headers, body ?? "", false)
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

  onAbort(listener: () => void): void {
    if (this.aborted) listener()
    else (this.abortListeners ??= []).push(listener)
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
    this.owner ??= this.context.held.ownerOf(this.route, this, (answer) => this.refuseUnread(answer))
    if (this.owner === undefined) return
    if (!this.owner.shares.take(this.owner.name, chunk.byteLength)) {
      this.drop()
      const { overloaded } = this.failures
      const busy = (closes: boolean): void =>
        this.write(overloaded.status, overloadedHeaders, overloaded.body, closes)
      return isLast ? busy(false) : this.refuse(busy)
    }
    this.takenBytes += chunk.byteLength
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

  /** Held bytes of the body are released. */
  private drop(): void {
    this.held = []
    this.rate?.stop()
    this.owner?.shares.release(this.owner.name, this.takenBytes)
    this.takenBytes = 0
  }

  private handle(body: Uint8Array): void {
    try {
      this.route.handle(this, body, this)
    } catch (defect) {
      this.context.report(defect)
      // A stream that nothing will end.
      if (this.streamed?.pieces.isOver === false) this.response.close()
      else this.fail(this.failures.failed, false)
    }
  }

  /** Answers once the rest of the body is out of the way. */
  private refuse(answer: (closes: boolean) => void): void {
    const declared = this.declaredBytes > 0 ? this.declaredBytes - this.heldBytes : undefined
    this.refused = new RequestBody(this.response, declared, this.state)
    this.refused.discard((outcome) => answer(outcome !== "Complete"))
  }

  private refuseUnread(answer: (reply: HotReply) => void): void {
    this.isRefusing = true
    attempt(() => answer(this), this.context)
    // It threw, or said nothing.
    if (this.refused === undefined) this.refuse((closes) => this.fail(this.failures.failed, closes))
  }

  private tooSlow(): void {
    this.drop()
    this.fail(this.failures.bodyTooSlow, true)
  }

  private get failures(): HotFailures {
    return failuresOf(this.route.errors)
  }

  private fail(answer: FrontAnswer, closes: boolean): void {
    this.write(answer.status, errorHeaders, answer.body, closes)
  }

  private write(status: number, headers: Headers, body: string | Uint8Array, closes: boolean): void {
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
