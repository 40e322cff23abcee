import type { UwsResponse } from "./Addon.ts"
import type { BlockPool } from "../BlockPool.ts"
import { FileSender, type FileSink } from "../FileSender.ts"
import type { FrontState, Watched } from "./FrontState.ts"
import { setTimerBack } from "./NativeTimer.ts"
import type { ByteSource, FileSent } from "../RawRoute.ts"

/** The callbacks of an answer out of a source. */
export interface FileEnds {
  readonly writeHead: () => void
  /** everything is with the native code, which must not be asked for anything more */
  readonly ended: () => void
  /** it cannot become whole: the connection is to be ended */
  readonly failed: (cause: Error) => void
  readonly sent: FileSent
}

/** An answer out of a source on uWebSockets.js: nothing of it is held by the native code. */
export class UwsFile implements FileSink, Watched {
  readonly sender: FileSender
  isBehind = false
  /** everything is with the native code, which must not be asked for anything more */
  isComplete = false
  private readonly response: UwsResponse
  private readonly state: FrontState
  private readonly ends: FileEnds
  private readonly totalBytes: number
  private readonly isLast: boolean
  private sentBytes = 0
  private isBegun = false
  private blockedSince = 0

  /** `isLast`: nothing behind its request may be served, see `LastAnswer.ts` */
  constructor(
    response: UwsResponse,
    state: FrontState,
    pool: BlockPool,
    source: ByteSource,
    isLast: boolean,
    ends: FileEnds
  ) {
    this.response = response
    this.state = state
    this.ends = ends
    this.totalBytes = source.to - source.from
    this.isLast = isLast
    this.sender = new FileSender(source, this, pool, ends.sent)
    state.watch(this)
  }

  give(bytes: Uint8Array): number {
    const { response, totalBytes } = this
    const left = totalBytes - this.sentBytes
    // The last answer of a connection is over only when nothing behind its request can be served: its last byte leaves
    // from a paused socket.
    const isHeldBack = this.isLast && left > 1 && bytes.length >= left
    const given = isHeldBack ? bytes.subarray(0, left - 1) : bytes
    let isTaken = false
    response.cork(() => {
      this.begin()
      if (this.isLast && left === 1) response.pause()
      const [ok, done] = response.tryEnd(given, totalBytes)
      isTaken = ok || done
      this.isComplete = done
    })
    if (isTaken) {
      this.sentBytes += given.length
      return given.length
    }
    this.isBehind = true
    this.blockedSince = performance.now()
    const before = this.sentBytes
    this.sentBytes = response.getWriteOffset()
    return this.sentBytes - before
  }

  end(): void {
    this.state.unwatch(this)
    // Not within the cork: the receiver of this answer may close the server, and with it the corked bytes.
    this.ends.ended()
  }

  fail(cause: Error): void {
    this.ends.failed(cause)
  }

  /** The client is gone. */
  abort(): void {
    this.state.unwatch(this)
    this.sender.abort()
  }

  check(nowMillis: number): void {
    const isStalled = this.isBehind && nowMillis - this.blockedSince >= this.state.limits.stalledStreamMillis
    if (isStalled) this.response.close()
    // The file may be slow.
    else setTimerBack(this.response)
  }

  private begin(): void {
    if (this.isBegun) return
    this.isBegun = true
    this.ends.writeHead()
    this.response.onWritable(() => {
      this.isBehind = false
      this.sender.writable()
      return !this.isBehind
    })
  }
}
