import type { HotStream } from "./HotRoute.ts"

/**
 * Bytes handed to an engine in one cork. uWebSockets.js keeps what the socket does not take in a buffer without saying how
 * much, so it is never given more than this beyond what the socket has taken. And before 20.77 it loses a write that does
 * not fit into what is left of the cork's 16 KiB where the socket is full: this leaves room for the head.
 */
export const pieceBytes = 12 * 1024

/** A chunk's size with the line ends around it (RFC 9112 7.1), which is in the cork too. */
const sizeBytes = "\r\n3000\r\n".length

/** Callbacks chained to it run when the current code has returned. */
const turnEnd = Promise.resolve()

/** An engine's side of a streamed answer. */
export interface PieceSink {
  /** Runs `writes` so that what they write leaves together; before the first time it writes the head. */
  cork(writes: () => void): void
  /** false: not all of it has left, and `PieceStream.writable` will be called */
  write(piece: Uint8Array): boolean
  /** of what was written, as far as the engine says; 0 while `write` answers true */
  readonly heldBytes: number
  /** The end of the answer; nothing of it may be touched from then on. */
  end(): void
}

/** Takes everything and sends nothing: for a client that has gone, or an answer that was given before. */
export const deadStream: HotStream = {
  write: () => true,
  onDrain: () => undefined,
  end: () => undefined,
  bufferedBytes: 0
}

/**
 * The pieces of a streamed answer, in order, on either engine. Pieces written in one turn leave together at its end;
 * once the engine is behind, pieces wait here, where they are counted.
 */
export class PieceStream implements HotStream {
  /** ended or aborted: the engine's response must not be touched */
  isOver = false
  /** the engine has not taken all that it was given */
  isBehind = false
  private readonly sink: PieceSink
  private queue: Array<Uint8Array> = []
  private queuedBytes = 0
  private isEnding = false
  private isScheduled = false
  /** a `write` answered false, and `onDrain` has not been called */
  private owesDrain = false
  private drained: () => void = () => undefined
  /** made once: every piece needs them */
  private readonly advancing = (): void => this.advance()
  private readonly leaving = (): void => {
    this.isScheduled = false
    if (!this.isOver && !this.isBehind) this.flush()
  }

  constructor(sink: PieceSink) {
    this.sink = sink
  }

  get bufferedBytes(): number {
    return this.isOver ? 0 : this.queuedBytes + this.sink.heldBytes
  }

  write(piece: string | Uint8Array): boolean {
    if (this.isOver || this.isEnding) return true
    this.push(piece)
    this.owesDrain ||= this.isBehind
    return !this.isBehind
  }

  onDrain(listener: () => void): void {
    this.drained = listener
  }

  end(piece: string | Uint8Array = ""): void {
    if (this.isOver || this.isEnding) return
    this.push(piece)
    this.isEnding = true
    this.schedule()
  }

  /** The engine can take more. */
  writable(): void {
    if (this.isOver) return
    this.isBehind = false
    this.pass()
    if (this.isOver || this.isBehind || !this.owesDrain) return
    this.owesDrain = false
    this.drained()
  }

  /** The client is gone. */
  abort(): void {
    this.isOver = true
    this.queue = []
    this.queuedBytes = 0
  }

  private push(piece: string | Uint8Array): void {
    // Waiting bytes are copied: a piece may be a few bytes of a buffer of 64 KB, which it would keep alive.
    const bytes = typeof piece === "string" || this.isBehind ? Buffer.from(piece) : piece
    if (bytes.length === 0) return
    this.queue.push(bytes)
    this.queuedBytes += bytes.length
    if (this.queuedBytes < pieceBytes) this.schedule()
    // So much is worth a system call of its own, and the writer learns sooner whether the socket takes it.
    else if (!this.isBehind) this.flush()
  }

  private schedule(): void {
    if (this.isScheduled || this.isBehind) return
    this.isScheduled = true
    // Costs a third of queueMicrotask, which keeps an async resource for each.
    void turnEnd.then(this.leaving)
  }

  /** Passes the turn's pieces to the engine. */
  private flush(): void {
    this.pass()
    if (this.isBehind) this.queue = this.queue.map((piece) => Buffer.from(piece))
  }

  private pass(): void {
    do this.sink.cork(this.advancing)
    while (this.queue.length > 0 && !this.isBehind)
  }

  private advance(): void {
    const { queue } = this
    let room = pieceBytes
    let next = 0
    for (let piece = queue[0]; piece !== undefined && room > 0 && !this.isBehind; piece = queue[next]) {
      const isLong = piece.length > room
      const slice = isLong ? piece.subarray(0, room) : piece
      if (isLong) queue[next] = piece.subarray(room)
      else next++
      room -= slice.length + sizeBytes
      this.queuedBytes -= slice.length
      this.isBehind = !this.sink.write(slice)
    }
    queue.splice(0, next)
    if (this.isBehind || queue.length > 0 || !this.isEnding) return
    this.isOver = true
    this.sink.end()
  }
}
