import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import type { UwsResponse } from "./Addon.ts"
import type { Discarded } from "../EarlyAnswer.ts"
import type { FrontState } from "./FrontState.ts"
import { UploadRate } from "./UploadRate.ts"

/** Why a body could not be read. */
export type BodyFailure = "TooLarge" | "Aborted"

type Chunks = [Uint8Array, ...Array<Uint8Array>]

const nothing = new Uint8Array(0)

let isPrimed = false

/**
 * uWebSockets.js resumes a socket with the poll events of the last one that was paused, in two variables for the whole
 * thread: one for sockets with buffered output and one for those without. A socket that was paused with and is resumed
 * without would stay deaf for ever if no other had set the second variable, so the first request with a body sets it.
 */
const primePause = (response: UwsResponse): void => {
  if (isPrimed) return
  isPrimed = true
  response.pause()
  response.resume()
}

/**
 * The body of one request on uWebSockets.js. Chunks are copied out of the socket's buffer and held until somebody
 * reads; when more than `bodyHighWaterBytes` are held the socket is paused, so that the client waits and not the memory.
 */
export class RequestBody {
  /** Content-Length; undefined for a chunked body */
  readonly declaredBytes: number | undefined
  isComplete = false
  private readonly response: UwsResponse
  private readonly state: FrontState
  protected held: Array<Uint8Array> = []
  protected heldBytes = 0
  private receivedBytes = 0
  protected isAborted = false
  protected isDetached = false
  protected isPaused = false
  private isPauseDue = false
  /** once a body takes more than one chunk */
  private rate: UploadRate | undefined
  /** the most that may be held; Infinity-like while the whole body is collected */
  protected highWaterBytes: number
  protected wake: (() => void) | undefined
  protected discarding: ((outcome: Discarded) => void) | undefined
  private collected: Uint8Array | undefined

  constructor(response: UwsResponse, declaredBytes: number | undefined, state: FrontState) {
    this.response = response
    this.declaredBytes = declaredBytes
    this.state = state
    this.highWaterBytes = state.limits.bodyHighWaterBytes
    primePause(response)
  }

  receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.isDetached) return
    this.receivedBytes += chunk.byteLength
    if (this.discarding === undefined && chunk.byteLength > 0) {
      this.held.push(this.copyOf(Buffer.from(chunk)))
      this.heldBytes += chunk.byteLength
    }
    if (isLast) {
      this.isComplete = true
      this.stopWatching()
    } else {
      this.watchRate().count(chunk.byteLength)
    }
    this.notify()
    const isDue = !isLast && !this.isDetached && this.discarding === undefined
    if (isDue && this.heldBytes > this.highWaterBytes) this.pause()
    this.continueDiscarding()
  }

  /** The chunk is detached when `receive` returns. */
  protected copyOf(chunk: Buffer): Uint8Array {
    return Buffer.from(chunk)
  }

  /** From here on the client has to be fast enough. */
  protected watchRate(): UploadRate {
    const { minUploadBytesPerSecond } = this.state.limits
    if (this.rate === undefined) {
      this.rate = new UploadRate(this.response, this.state, minUploadBytesPerSecond, () => this.tooSlow())
      this.rate.holdBack(this.isPaused)
    }
    return this.rate
  }

  protected tooSlow(): void {
    this.response.close()
  }

  abort(): void {
    this.isAborted = true
    this.detach()
    this.notify()
    this.discarding?.("TooSlow")
  }

  /** The socket is answered or gone and must not be touched through this body any more. */
  detach(): void {
    this.isDetached = true
    this.isPaused = false
    this.stopWatching()
  }

  /** The next chunks, as many as have come. */
  readonly pull: Pull.Pull<Readonly<Chunks>, BodyFailure> = Effect.callback((resume) => {
    const attempt = () => {
      // Before resuming, which may run the reader on to its next pull.
      this.wake = undefined
      if (this.held.length > 0) resume(Effect.succeed(this.take()))
      else if (this.isComplete) resume(Cause.done())
      else if (this.isAborted) resume(Effect.fail("Aborted" as const))
      else this.wake = attempt
    }
    attempt()
    return Effect.sync(() => {
      this.wake = undefined
    })
  })

  /** The whole body. Refused before it is read where Content-Length already says that it is too long. */
  collect(maxBytes: number): Effect.Effect<Uint8Array, BodyFailure> {
    if (this.collected !== undefined) return Effect.succeed(this.collected)
    if (this.declaredBytes !== undefined && this.declaredBytes > maxBytes) return Effect.fail("TooLarge")
    return Effect.callback((resume) => {
      const attempt = () => {
        this.wake = undefined
        this.highWaterBytes = this.state.limits.bodyHighWaterBytes
        if (this.heldBytes > maxBytes) resume(Effect.fail("TooLarge" as const))
        else if (this.isComplete) resume(Effect.succeed(this.join()))
        else if (this.isAborted) resume(Effect.fail("Aborted" as const))
        else this.awaitMore(attempt)
      }
      attempt()
      return Effect.sync(() => {
        this.wake = undefined
      })
    })
  }

  /**
   * Throws away what is left, because an answer is ready: closing a connection on which the client is still sending
   * resets it, and the client may lose the answer.
   */
  discard(done: (outcome: Discarded) => void): void {
    this.held = []
    this.heldBytes = 0
    if (this.isComplete) {
      this.resume()
      return done("Complete")
    }
    const { lingerBytes, lingerMillis } = this.state.limits
    const timer = setTimeout(() => this.discarding?.("TooSlow"), lingerMillis)
    this.discarding = (outcome) => {
      clearTimeout(timer)
      this.discarding = () => undefined
      this.stopWatching()
      done(outcome)
    }
    this.resume()
    if ((this.declaredBytes ?? 0) - this.receivedBytes > lingerBytes) this.discarding("TooLong")
  }

  private take(): Readonly<Chunks> {
    const chunks = this.held as Chunks
    this.held = []
    this.heldBytes = 0
    this.resume()
    return chunks
  }

  private join(): Uint8Array {
    const [first = nothing] = this.held
    this.collected = this.held.length > 1 ? Buffer.concat(this.held) : first
    this.held = []
    this.heldBytes = 0
    return this.collected
  }

  private awaitMore(attempt: () => void): void {
    this.wake = attempt
    this.highWaterBytes = Number.POSITIVE_INFINITY
    this.resume()
  }

  private continueDiscarding(): void {
    if (this.discarding === undefined) return
    if (this.isComplete) this.discarding("Complete")
    else if (this.receivedBytes > this.state.limits.lingerBytes) this.discarding("TooLong")
  }

  protected notify(): void {
    if (this.wake !== undefined) this.wake()
  }

  /** The socket is deaf while it is paused: it tells neither that it is writable nor that the client has left. */
  get isDeaf(): boolean {
    return this.isPaused
  }

  /** or may become so before it is resumed */
  get mayBeDeaf(): boolean {
    return this.isPaused || !this.isComplete
  }

  /** A write that the socket did not take whole has made it poll again. */
  pauseAgain(): void {
    if (this.isPaused) this.response.pause()
  }

  protected pause(): void {
    this.isPaused = true
    this.rate?.holdBack(true)
    this.response.pause()
    if (this.isPauseDue) return
    this.isPauseDue = true
    // Buffered bytes are written once more when the native callback returns, and that may end the pause.
    setImmediate(() => {
      this.isPauseDue = false
      this.pauseAgain()
    })
  }

  /** Before the answer to a body that was complete while it was paused, too: the next request would not be read. */
  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    this.rate?.holdBack(false)
    // The last pause may have been without buffered output, and a write since then may have left some.
    this.response.pause()
    this.response.resume()
  }

  private stopWatching(): void {
    this.rate?.stop()
  }
}
