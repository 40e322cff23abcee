import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { ClientAbort } from "effect/http/HttpServerError"
import type { UwsResponse } from "./Addon.ts"
import { addressFromBytes } from "../ClientAddress.ts"
import type { FrontState, Watched } from "./FrontState.ts"
import { afterDispatch, shortBytes } from "./LastAnswer.ts"
import type { Ending } from "../HotExchange.ts"
import { setTimerBack } from "./NativeTimer.ts"
import type { Discarded } from "../EarlyAnswer.ts"
import { pieceBytes } from "../PieceStream.ts"
import type { RequestBody } from "./RequestBody.ts"
import { endWithoutBody, type ResponseHead, writeHead } from "./ResponseHead.ts"

/** How often to retry a socket that cannot report that it is writable, because it is paused for reading. */
const deafRetryMillis = 20

/** One request and its answer on uWebSockets.js: the only code that touches the native response. */
export class Exchange implements Watched {
  readonly body: RequestBody | undefined
  /** answered, aborted or upgraded: the native response is invalid */
  isGone = false
  isAborted = false
  /** the head is on its way, so that no other answer can be sent */
  isStarted = false
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  private readonly response: UwsResponse
  private readonly state: FrontState
  /** within a callback of this very socket, which uWebSockets.js has corked */
  private isCorked = true
  /**
   * a piece of the body came in this turn of the loop, and uWebSockets.js, which uncorks behind the microtasks, may not have
   * done so. The cork that an answer begins in does no harm, as its socket is not full
   */
  private mayBeCorked = false
  private peer: string | undefined
  private head: ResponseHead | undefined
  private totalBytes: number | undefined
  /** the chunk that is being written: its place in the answer, and how much of it has been handed over */
  private pending: Uint8Array | undefined
  private pendingStart = 0
  private pendingOffset = 0
  private lastByte: Uint8Array | undefined
  /** the last write left something in the native buffer */
  private isBehind = false
  private wake: (() => void) | undefined
  private retry: ReturnType<typeof setInterval> | undefined
  private blockedSince = 0
  /** nothing behind this request may be served: see `LastAnswer.ts` */
  private readonly isLast: boolean

  constructor(response: UwsResponse, state: FrontState, body: RequestBody | undefined, isLast: boolean) {
    this.response = response
    this.state = state
    this.body = body
    this.isLast = isLast
    state.inFlight++
  }

  /**
   * The address of the socket's other end. Asking costs a system call, as much as the rest of reading a small request,
   * so it is asked on first use: "" if that comes after the answer.
   */
  get peerAddress(): string {
    this.peer ??= this.isGone ? "" : addressFromBytes(new Uint8Array(this.response.getRemoteAddress()))
    return this.peer
  }

  receive(chunk: ArrayBuffer, isLast: boolean): void {
    this.isCorked = true
    this.mayBeCorked = true
    this.body?.receive(chunk, isLast)
    this.isCorked = false
  }

  /** The request's handler has returned to uWebSockets.js. */
  leave(): void {
    this.isCorked = false
  }

  /** The client went away, or it was dropped. */
  abort(): void {
    if (this.isGone) return
    this.isAborted = true
    this.finish()
    this.fiber?.interruptUnsafe(undefined, ClientAbort.annotation)
    this.body?.abort()
    this.release()
  }

  /** Ends the connection without another byte, so that half an answer cannot pass for a whole one. */
  reset(): void {
    if (this.isGone) return
    this.response.close()
    // uWebSockets.js has told so already, except where the abort handler was not attached yet.
    this.abort()
  }

  /** From here on the socket belongs to a WebSocket. */
  upgrade(handshake: (response: UwsResponse) => void): void {
    this.finish()
    if (this.isCorked) handshake(this.response)
    else this.state.late.upgrade(this.response, handshake)
  }

  /** The WebSocket's client went away without a close frame. */
  abandon(): void {
    this.isAborted = true
    this.fiber?.interruptUnsafe(undefined, ClientAbort.annotation)
  }

  /** A whole answer; `body` undefined for those that have none (HEAD, 204, 304). */
  answer(head: ResponseHead, body: string | Uint8Array | undefined): Effect.Effect<void> {
    if (this.isGone) return Effect.void
    if (this.isLast && body !== undefined && body.length > shortBytes) return this.answerInPieces(head, body)
    const closes = head.closes || this.isLast || this.state.isDraining
    if (this.body === undefined || this.body.isComplete) {
      this.body?.resume()
      this.send(head, body, closes ? "close" : "keep")
      return Effect.void
    }
    return this.afterBody(this.body, (outcome) => {
      // An answer without a body cannot close its connection, which must not be left to idle for ever.
      if (outcome === "TooSlow" && body === undefined) return this.reset()
      this.send(
        head,
        body,
        outcome === "TooLong" ? "announce" : outcome === "TooSlow" || closes ? "close" : "keep"
      )
    })
  }

  /** Begins an answer in pieces: of known length, or chunked. Nothing is sent before the first piece. */
  start(head: ResponseHead, totalBytes: number | undefined): void {
    this.head = head
    this.totalBytes = totalBytes
  }

  /** The next piece; done when the client can take more. */
  push(chunk: Uint8Array): Effect.Effect<void> {
    if (this.isGone) return Effect.void
    // The cork of a native callback is one for all pieces: see `pieceBytes`.
    if (this.totalBytes === undefined && this.mayBeCorked)
      return Effect.andThen(
        this.leaveCork(),
        Effect.suspend(() => this.push(chunk))
      )
    return this.hand(this.withoutLastByte(chunk))
  }

  /** The end of an answer in pieces. */
  end(): Effect.Effect<void> {
    if (this.isGone) return Effect.void
    if (this.body === undefined || this.body.isComplete) {
      this.body?.resume()
      return this.finishPieces()
    }
    return Effect.andThen(
      this.afterBody(this.body, (outcome) => {
        if (outcome === "TooSlow") this.reset()
      }),
      Effect.suspend(() => this.finishPieces())
    )
  }

  check(nowMillis: number): void {
    if (nowMillis - this.blockedSince >= this.state.limits.stalledReaderMillis) this.reset()
    // A paused socket has no timer.
    else if (this.body?.isDeaf !== true) setTimerBack(this.response)
  }

  private answerInPieces(head: ResponseHead, body: string | Uint8Array): Effect.Effect<void> {
    const bytes = Buffer.from(body)
    this.start(head, bytes.length)
    return Effect.andThen(
      this.push(bytes),
      Effect.suspend(() => this.end())
    )
  }

  private leaveCork(): Effect.Effect<void> {
    return Effect.callback((resume) =>
      afterDispatch(() => {
        this.mayBeCorked = false
        resume(Effect.void)
      })
    )
  }

  private hand(chunk: Uint8Array): Effect.Effect<void> {
    if (chunk.length === 0) return Effect.void
    this.pendingStart += this.pendingOffset
    this.pendingOffset = 0
    this.pending = chunk
    this.advance(false)
    return this.pending === undefined ? Effect.void : this.awaitReader()
  }

  private send(head: ResponseHead, body: string | Uint8Array | undefined, ending: Ending): void {
    this.isStarted = true
    if (this.isLast) return this.endLater(() => this.writeWhole(head, body, ending))
    if (this.isCorked) this.writeWhole(head, body, ending)
    else this.response.cork(() => this.writeWhole(head, body, ending))
    this.finish()
  }

  private endLater(write: () => void): void {
    afterDispatch(() => {
      if (this.isGone) return
      this.response.cork(write)
      this.finish()
    })
  }

  private writeWhole(head: ResponseHead, body: string | Uint8Array | undefined, ending: Ending): void {
    const response = this.response
    writeHead(response, head)
    if (body !== undefined && ending !== "announce") response.end(body, ending === "close")
    else {
      if (ending !== "keep") response.writeHeader("Connection", "close")
      if (this.isLast) response.pause()
      if (body !== undefined) response.end(body)
      else endWithoutBody(response, head.contentLength)
    }
  }

  private finishPieces(): Effect.Effect<void> {
    if (this.isGone) return Effect.void
    if (this.lastByte !== undefined) {
      const last = this.lastByte
      this.lastByte = undefined
      return this.isLast ? this.endWith(last) : this.hand(last)
    }
    if (this.head !== undefined && !this.isStarted) return this.answer(this.head, "")
    if (this.totalBytes !== undefined) {
      this.reset()
      return Effect.die(new Error(`Response body is shorter than its content-length of ${this.totalBytes}`))
    }
    if (this.isLast) {
      this.endLater(() => {
        this.response.pause()
        this.response.end()
      })
      return Effect.void
    }
    this.cork(() => this.response.end())
    this.finish()
    return Effect.void
  }

  private endWith(last: Uint8Array): Effect.Effect<void> {
    return Effect.callback((resume) =>
      afterDispatch(() => {
        if (!this.isGone) this.response.pause()
        resume(this.isGone ? Effect.void : this.hand(last))
      })
    )
  }

  /**
   * While the client still sends, the answer must not be over: its next bytes would switch the idle timer off. The last
   * answer of a connection is over only when nothing behind its request can be served.
   */
  private withoutLastByte(chunk: Uint8Array): Uint8Array {
    const isEnd =
      this.totalBytes !== undefined &&
      this.pendingStart + this.pendingOffset + chunk.length >= this.totalBytes
    const isHeldBack = this.isLast || (chunk.length > 1 && this.body?.isComplete === false)
    if (!isEnd || !isHeldBack || chunk.length === 0) return chunk
    this.lastByte = chunk.subarray(chunk.length - 1)
    return chunk.subarray(0, chunk.length - 1)
  }

  /**
   * Hands over as much of the pending chunk as the socket takes; where there is none, as much of the native buffer. All that
   * is known of that is whether a write left something in it. So a socket that has become writable is given less than
   * the kernel has just taken, and one that cannot say so is asked with single bytes.
   */
  private advance(isWritable: boolean): void {
    const { totalBytes } = this
    if (totalBytes !== undefined) return this.cork(() => this.writeCounted(totalBytes))
    let size = this.isBehind && !isWritable ? 1 : pieceBytes
    do {
      this.response.cork(() => this.writePiece(size))
      size = pieceBytes
    } while (this.pending !== undefined && !this.isBehind)
  }

  private writeCounted(totalBytes: number): void {
    const chunk = this.pending
    if (chunk === undefined) return
    if (!this.isStarted) this.begin()
    const [ok, done] = this.response.tryEnd(chunk.subarray(this.pendingOffset), totalBytes)
    if (done) this.finish()
    if (!ok && !done) return
    this.pendingOffset = chunk.length
    this.pending = undefined
  }

  private writePiece(size: number): void {
    const chunk = this.pending
    if (chunk === undefined) return
    if (!this.isStarted) this.begin()
    const piece = chunk.subarray(this.pendingOffset, this.pendingOffset + size)
    this.pendingOffset += piece.length
    if (piece.length > 0) {
      this.isBehind = !this.response.write(piece)
      if (this.isBehind) return
    }
    if (this.pendingOffset === chunk.length) this.pending = undefined
  }

  private begin(): void {
    const response = this.response
    this.isStarted = true
    if (this.head !== undefined) {
      writeHead(response, this.head)
      if (this.head.closes || this.isLast || this.state.isDraining)
        response.writeHeader("Connection", "close")
    }
    response.onWritable((offset) => this.writable(offset))
  }

  private writable(offset: number): boolean {
    this.blockedSince = performance.now()
    return this.proceed(offset, true)
  }

  private proceed(offset: number, isWritable: boolean): boolean {
    if (this.totalBytes !== undefined) this.pendingOffset = offset - this.pendingStart
    this.advance(isWritable)
    if (this.pending === undefined) this.release()
    return this.pending === undefined
  }

  private tryDeaf(): void {
    if (this.body?.isDeaf !== true) return
    const before = this.pendingOffset
    const isOver = this.proceed(this.response.getWriteOffset(), false)
    // The native buffer alone takes the single byte.
    if (this.pendingOffset > before + 1) this.blockedSince = performance.now()
    if (!isOver && !this.isGone) this.body.pauseAgain()
  }

  private awaitReader(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.pending === undefined || this.isGone) return resume(Effect.void)
      this.blockedSince = performance.now()
      this.state.watch(this)
      if (this.body?.mayBeDeaf === true) this.retry = setInterval(() => this.tryDeaf(), deafRetryMillis)
      this.wake = () => resume(Effect.void)
      return Effect.sync(() => this.release())
    })
  }

  private release(): void {
    this.state.unwatch(this)
    clearInterval(this.retry)
    const wake = this.wake
    this.wake = undefined
    if (wake !== undefined) wake()
  }

  private afterBody(body: RequestBody, write: (outcome: Discarded) => void): Effect.Effect<void> {
    return Effect.callback((resume) => {
      body.discard((outcome) => {
        if (!this.isGone) write(outcome)
        resume(Effect.void)
      })
    })
  }

  private cork(writes: () => void): void {
    if (this.isCorked) writes()
    else this.response.cork(writes)
  }

  private finish(): void {
    this.isGone = true
    this.body?.detach()
    this.state.finished()
  }
}
