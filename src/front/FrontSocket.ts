import type { FrontLimits } from "./FrontOptions.ts"
import type { HotContext } from "./HotAnswer.ts"
import type { HotSocket, HotSocketListener, HotSocketRoute } from "./HotSocket.ts"
import type { OpenSocket } from "./OpenSockets.ts"

/** RFC 6455 7.4.1 */
const tooBig = 1009
const faulty = 1011
export const lost = 1006

/** The shared state of the sockets of a route. */
export interface SocketSetup {
  readonly route: HotSocketRoute
  readonly context: HotContext
  readonly limits: FrontLimits
}

/** A hot socket on either engine: an engine says how to write and how to end it. One small object for each socket. */
export abstract class FrontSocket implements HotSocket, OpenSocket {
  protected readonly setup: SocketSetup
  private listener: HotSocketListener | undefined
  /** 0 until it is over */
  private code = 0
  /** the last write left bytes here */
  private isBehind = false

  protected constructor(setup: SocketSetup) {
    this.setup = setup
  }

  abstract drop(): void
  /** bytes that wait in this process */
  protected abstract readonly waitingBytes: number
  /** false: bytes of it, or of what was written before, wait in this process */
  protected abstract write(text: string): boolean
  protected abstract end(code: number, reason: string): void

  get isOver(): boolean {
    return this.code !== 0
  }

  get bufferedBytes(): number {
    return this.isOver ? 0 : this.waitingBytes
  }

  send(text: string): boolean {
    if (this.isOver) return true
    // Asking the engine how much waits costs as much as the rest of this.
    if (this.isBehind && this.waitingBytes > this.setup.limits.webSocketMaxBufferedBytes) {
      this.terminate()
      return true
    }
    this.isBehind = !this.write(text)
    return !this.isBehind
  }

  close(code: number, reason: string): void {
    if (this.isOver) return
    this.code = code
    this.end(code, reason)
    this.sayClosed()
  }

  terminate(): void {
    if (this.isOver) return
    this.code = lost
    this.drop()
    this.sayClosed()
  }

  protected begin(open: (socket: HotSocket) => HotSocketListener): void {
    this.setup.context.open.add(this)
    try {
      this.listener = open(this)
      // Within `open` there was no listener yet.
      if (this.isOver) this.sayClosed()
    } catch (defect) {
      this.fail(defect)
    }
  }

  /** `bytes`: of text its UTF-8 */
  protected receive(bytes: Buffer, isBinary: boolean): void {
    if (this.isOver) return
    if (bytes.length > this.setup.route.maxFrameBytes) return this.close(tooBig, "Message too long")
    try {
      this.listener?.received(isBinary ? bytes : bytes.toString("utf8"))
    } catch (defect) {
      this.fail(defect)
    }
  }

  protected drained(): void {
    if (this.isOver || this.waitingBytes > 0) return
    try {
      this.listener?.drained()
    } catch (defect) {
      this.fail(defect)
    }
  }

  /** The connection is gone. */
  protected gone(code: number): void {
    this.setup.context.open.remove(this)
    if (this.isOver) return
    this.code = code
    this.sayClosed()
  }

  private sayClosed(): void {
    const { listener } = this
    this.listener = undefined
    try {
      listener?.closed(this.code)
    } catch (defect) {
      this.setup.context.report(defect)
    }
  }

  private fail(defect: unknown): void {
    this.setup.context.report(defect)
    this.close(faulty, "Internal server error")
  }
}
