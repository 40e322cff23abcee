import type { IncomingMessage, ServerResponse } from "node:http"
import type { Discarded } from "../EarlyAnswer.ts"
import type { FrontLimits } from "../FrontOptions.ts"
import type { BodySource } from "../PulledBody.ts"
import type { BodyEnd } from "../RawRoute.ts"

/** The body of a raw route on Node's server, which reads no more ahead than a stream does. */
export class NodePulledBody implements BodySource {
  readonly declaredBytes: number | undefined
  isSlow = false
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private readonly limits: FrontLimits
  /** the client waits for a 100 before it sends */
  private expectsContinue: boolean
  private isAborted = false
  private wake: (() => void) | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    limits: FrontLimits,
    declaredBytes: number | undefined,
    expectsContinue: boolean
  ) {
    this.request = request
    this.response = response
    this.limits = limits
    this.declaredBytes = declaredBytes
    this.expectsContinue = expectsContinue
    request.on("readable", () => this.wake?.())
    request.on("end", () => this.wake?.())
  }

  get minBytesPerSecond(): number {
    return this.limits.minUploadBytesPerSecond
  }

  get isComplete(): boolean {
    return this.request.complete && this.request.readableLength === 0
  }

  get isAwaited(): boolean {
    return this.wake !== undefined
  }

  next(take: (piece: Uint8Array | BodyEnd) => void): void {
    this.goOn()
    const attempt = (): void => {
      this.wake = undefined
      const piece: Buffer | null = this.request.read()
      if (piece !== null) take(piece)
      else if (this.isComplete) take("complete")
      else if (this.isAborted) take("gone")
      else if (this.isSlow) take("slow")
      else this.wake = attempt
    }
    attempt()
  }

  tooSlow(): void {
    this.isSlow = true
    this.wake?.()
  }

  abort(): void {
    this.isAborted = true
    this.wake?.()
  }

  /** Throws away what is left, because an answer is ready. */
  discard(done: (outcome: Discarded) => void): void {
    const { lingerBytes, lingerMillis } = this.limits
    if (this.isComplete) return done("Complete")
    // It has not begun to send, and may not.
    if (this.expectsContinue || (this.declaredBytes ?? 0) > lingerBytes) return done("TooLong")
    let isDone = false
    let bytes = 0
    const finish = (outcome: Discarded): void => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      done(outcome)
    }
    const timer = setTimeout(() => finish("TooSlow"), lingerMillis)
    const drain = (): void => {
      for (let piece: Buffer | null = this.request.read(); piece !== null; piece = this.request.read())
        bytes += piece.length
      if (this.isComplete) finish("Complete")
      else if (this.isAborted) finish("TooSlow")
      else if (bytes > lingerBytes) finish("TooLong")
    }
    this.wake = drain
    drain()
  }

  private goOn(): void {
    if (!this.expectsContinue) return
    this.expectsContinue = false
    this.response.writeContinue()
  }
}
