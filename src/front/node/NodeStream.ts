import type { ServerResponse } from "node:http"
import { type PieceSink, PieceStream } from "../PieceStream.ts"

/** A streamed answer on Node's server; the counterpart of `UwsStream`. */
export class NodeStream implements PieceSink {
  readonly pieces = new PieceStream(this)
  private readonly response: ServerResponse
  private readonly stalledMillis: number
  private readonly writeHead: () => void
  private isBegun = false
  private blockedSince = 0
  private timer: ReturnType<typeof setInterval> | undefined

  constructor(response: ServerResponse, stalledMillis: number, writeHead: () => void) {
    this.response = response
    this.stalledMillis = stalledMillis
    this.writeHead = writeHead
  }

  get heldBytes(): number {
    return this.response.writableLength
  }

  /** Node gathers the writes of a turn itself. */
  cork(writes: () => void): void {
    if (!this.isBegun) this.begin()
    writes()
  }

  write(piece: Uint8Array): boolean {
    if (this.response.write(piece)) return true
    this.blockedSince = performance.now()
    this.timer ??= setInterval(() => this.check(), Math.min(1000, this.stalledMillis / 4))
    return false
  }

  end(): void {
    clearInterval(this.timer)
    this.response.end()
  }

  abort(): void {
    clearInterval(this.timer)
    this.pieces.abort()
  }

  private begin(): void {
    this.isBegun = true
    this.writeHead()
    this.response.on("drain", () => this.pieces.writable())
  }

  private check(): void {
    if (!this.pieces.isBehind) {
      clearInterval(this.timer)
      this.timer = undefined
    } else if (performance.now() - this.blockedSince >= this.stalledMillis) this.response.destroy()
  }
}
