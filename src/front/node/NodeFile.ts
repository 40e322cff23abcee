import type { ServerResponse } from "node:http"
import type { BlockPool } from "../BlockPool.ts"
import { FileSender, type FileSink } from "../FileSender.ts"
import type { ByteSource, FileSent } from "../RawRoute.ts"

/** Node keeps what it was given until the socket has taken it. */
const pieceBytes = 64 * 1024

/** An answer out of a source on Node's server; the counterpart of `UwsFile`. */
export class NodeFile implements FileSink {
  readonly sender: FileSender
  isBehind = false
  isComplete = false
  private readonly response: ServerResponse
  private readonly stalledMillis: number
  private readonly failed: (cause: Error) => void
  private blockedSince = 0
  private timer: ReturnType<typeof setInterval> | undefined

  constructor(
    response: ServerResponse,
    stalledMillis: number,
    pool: BlockPool,
    source: ByteSource,
    ends: { readonly sent: FileSent; readonly failed: (cause: Error) => void }
  ) {
    this.response = response
    this.stalledMillis = stalledMillis
    this.failed = ends.failed
    this.sender = new FileSender(source, this, pool, ends.sent)
    response.on("drain", () => {
      this.isBehind = false
      this.sender.writable()
    })
  }

  give(bytes: Uint8Array): number {
    const piece = Buffer.from(bytes.subarray(0, pieceBytes))
    if (!this.response.write(piece)) {
      this.isBehind = true
      this.blockedSince = performance.now()
      this.timer ??= setInterval(() => this.check(), Math.min(1000, this.stalledMillis / 4))
    }
    return piece.length
  }

  end(): void {
    this.isComplete = true
    clearInterval(this.timer)
    this.response.end()
  }

  fail(cause: Error): void {
    this.failed(cause)
  }

  /** The client is gone. */
  abort(): void {
    clearInterval(this.timer)
    this.sender.abort()
  }

  private check(): void {
    if (!this.isBehind) {
      clearInterval(this.timer)
      this.timer = undefined
    } else if (performance.now() - this.blockedSince >= this.stalledMillis) this.response.destroy()
  }
}
