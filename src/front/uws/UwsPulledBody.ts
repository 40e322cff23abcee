import type { BodySource } from "../PulledBody.ts"
import type { BodyEnd } from "../RawRoute.ts"
import { copyOf, giveBack } from "./PieceBuffers.ts"
import { RequestBody } from "./RequestBody.ts"
import type { UwsResponse } from "./Addon.ts"
import { afterDispatch } from "./LastAnswer.ts"
import type { BodyTurns } from "./BodyTurns.ts"
import type { FrontState } from "./FrontState.ts"

/** Callbacks chained to it run behind those of a pull that was answered just now. */
const turnEnd = Promise.resolve()

/**
 * The body of a raw route on uWebSockets.js. The socket is read only while a pull waits, so that no more is held than one
 * turn of the native loop had read before it was paused.
 */
export class UwsPulledBody extends RequestBody implements BodySource {
  isSlow = false
  private readonly turns: BodyTurns
  /** the piece that was pulled last */
  private lent: Uint8Array | undefined

  constructor(response: UwsResponse, declaredBytes: number | undefined, state: FrontState) {
    super(response, declaredBytes, state)
    this.turns = state.turns
    this.highWaterBytes = 0
    // By then everything is there that came in one packet with the head.
    afterDispatch(this.pauseIdle)
  }

  next(take: (piece: Uint8Array | BodyEnd) => void): void {
    if (this.lent !== undefined) giveBack(this.lent)
    this.lent = undefined
    const attempt = (): void => {
      this.wake = undefined
      const [piece] = this.held
      if (piece !== undefined) {
        if (!this.turns.admits(piece.length, attempt)) return
        this.held.shift()
        this.heldBytes -= piece.length
        this.lent = piece
        take(piece)
        if (!this.isComplete) void turnEnd.then(this.pauseIdle)
      } else if (this.isComplete) {
        // The last of it may have come in spite of a pause, and a paused socket does not tell that its client has left.
        this.resume()
        take("complete")
        // A pull that waited for its turn may find that the request was answered meanwhile.
      } else if (this.isAborted || this.isDetached) take("gone")
      else if (this.isSlow) take("slow")
      else {
        this.wake = attempt
        this.watchRate()
        this.resume()
      }
    }
    attempt()
  }

  protected override copyOf(chunk: Buffer): Uint8Array {
    return copyOf(chunk)
  }

  protected override tooSlow(): void {
    this.isSlow = true
    this.notify()
  }

  private readonly pauseIdle = (): void => {
    const isIdle = this.wake === undefined && this.discarding === undefined
    if (isIdle && !this.isComplete && !this.isDetached && !this.isPaused) this.pause()
  }
}
