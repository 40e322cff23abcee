import type { UwsResponse } from "./Addon.ts"
import type { FrontState, Watched } from "./FrontState.ts"
import { setTimerBack } from "./NativeTimer.ts"
import { afterDispatch } from "./LastAnswer.ts"
import { type PieceSink, PieceStream } from "../PieceStream.ts"

/** The size of uWebSockets.js' cork buffer: a failed write may have left as much besides its own bytes. */
const corkBytes = 16 * 1024

/** How often the native timer of a stream that is not known to be behind is set back: it has 10 s, in steps of 4 s. */
const quietCheckMillis = 4_000

/** The callbacks at a streamed answer's start and end. */
interface StreamEnds {
  readonly writeHead: () => void
  /** everything is with the native code, which must not be asked for anything more */
  readonly ended: () => void
}

/**
 * A streamed answer on uWebSockets.js. A small write is only copied, so that whether the socket took it is known at the
 * next one: until then up to a cork's worth may wait unseen in the native buffer.
 */
export class UwsStream implements PieceSink, Watched {
  readonly pieces = new PieceStream(this)
  heldBytes = 0
  private readonly response: UwsResponse
  private readonly state: FrontState
  private readonly ends: StreamEnds
  /** everything is with the native code, which must not be asked for anything more */
  isComplete = false
  private readonly isLast: boolean
  private isBegun = false
  private isAborted = false
  private blockedSince = 0
  private checkedMillis = 0

  /** `isLast`: nothing behind its request may be served, see `LastAnswer.ts` */
  constructor(response: UwsResponse, state: FrontState, isLast: boolean, ends: StreamEnds) {
    this.isLast = isLast
    this.response = response
    this.state = state
    this.ends = ends
  }

  cork(writes: () => void): void {
    if (this.isBegun) this.response.cork(writes)
    else {
      this.response.cork(() => {
        this.begin()
        writes()
      })
    }
    // Not within the cork: the receiver of this answer may close the server, and with it the corked bytes.
    if (this.isComplete) this.ends.ended()
  }

  write(piece: Uint8Array): boolean {
    const isTaken = this.response.write(piece)
    if (isTaken) return true
    this.heldBytes = piece.length + corkBytes
    this.blockedSince = performance.now()
    return false
  }

  end(): void {
    if (this.isLast) return afterDispatch(() => this.endPaused())
    this.complete()
  }

  abort(): void {
    this.isAborted = true
    this.state.unwatch(this)
    this.pieces.abort()
  }

  check(nowMillis: number): void {
    const { pieces, response } = this
    if (pieces.isBehind) {
      if (nowMillis - this.blockedSince >= this.state.limits.stalledStreamMillis) response.close()
      else setTimerBack(response)
    } else if (nowMillis - this.checkedMillis >= quietCheckMillis) {
      // The native buffer may hold something unseen, and then its timer runs.
      this.checkedMillis = nowMillis
      setTimerBack(response)
    }
  }

  private endPaused(): void {
    if (this.isAborted) return
    this.response.cork(() => {
      this.response.pause()
      this.complete()
    })
    this.ends.ended()
  }

  private complete(): void {
    this.isComplete = true
    this.state.unwatch(this)
    // Not with its second argument: here it would write a header into the body.
    this.response.end()
  }

  private begin(): void {
    this.isBegun = true
    this.ends.writeHead()
    this.response.onWritable(() => this.writable())
    this.state.watch(this)
  }

  private writable(): boolean {
    this.blockedSince = performance.now()
    this.heldBytes = 0
    this.pieces.writable()
    return !this.pieces.isBehind
  }
}
