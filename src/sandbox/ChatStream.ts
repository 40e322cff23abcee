import { onEnd } from "./Call.ts"
import { firstPieceMillisOf, pieceMillisOf, type PreparedChat, usageAfter } from "./PreparedChat.ts"
import { done, Frames } from "./Wire.ts"

const eventStream = [
  ["Content-Type", "text/event-stream"],
  ["Cache-Control", "no-cache"]
].flat()

/** A streamed answer, word by word at its pace. A client that does not read is waited for; one that goes ends it. */
export class ChatStream {
  private readonly prepared: PreparedChat
  private readonly frames: Frames
  private readonly wordMillis: number
  /** words that are on their way: an aborted call pays for them */
  private sent = 0
  /** at which the next word is due, on the clock of `performance.now` */
  private dueAt = 0
  private timer: NodeJS.Timeout | undefined
  private hasEnded = false

  constructor(prepared: PreparedChat) {
    this.prepared = prepared
    this.frames = new Frames(prepared.named)
    this.wordMillis = pieceMillisOf(prepared) ?? prepared.shared.wordMillis
  }

  begin(): void {
    const { call, model, shared } = this.prepared
    onEnd(call.response, (isAborted) => {
      this.hasEnded = true
      clearTimeout(this.timer)
      shared.account.served(model.id, usageAfter(this.prepared, this.sent), isAborted)
    })
    call.response.writeHead(200, eventStream)
    call.response.flushHeaders()
    this.dueAt = performance.now() + firstPieceMillisOf(this.prepared)
    this.go()
  }

  /** Sends the words that are due, then waits for the next one. */
  private readonly go = (): void => {
    const { answer, deltas, request } = this.prepared
    const most = answer.breaksAfter ?? deltas.length
    for (;;) {
      if (this.hasEnded) return
      if (this.sent >= Math.min(deltas.length, most)) return this.end()
      const waitMillis = this.dueAt - performance.now()
      if (waitMillis > 0.5) return void (this.timer = setTimeout(this.go, waitMillis))
      const delta = deltas[this.sent++] ?? "{}"
      this.dueAt += this.wordMillis
      const isTaken = this.prepared.call.response.write(this.frames.delta(delta, request.play.stamp))
      if (!isTaken) return void this.prepared.call.response.once("drain", this.go)
    }
  }

  private end(): void {
    const { answer, call, model } = this.prepared
    if (answer.breaksAfter !== undefined) {
      call.response.end(this.frames.error(502, "The sandbox broke off while it generated"))
      return
    }
    const usage = usageAfter(this.prepared, this.sent)
    call.response.end(
      this.frames.finish(answer.finishReason) + this.frames.usage(usage, model.behaviour) + done
    )
  }
}
