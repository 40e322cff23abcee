/**
 * Cuts an event stream into its events, each with the blank line that ends it, so that one can be passed on byte for
 * byte. Lines end with LF or CRLF. Source: HTML standard, 9.2.6 Interpreting an event stream (a lone CR, which it
 * allows too, is sent by nobody).
 */
export class SseFrames {
  readonly #maxBytes: number
  readonly #onFrame: (frame: Buffer) => void
  /** the pieces of the event that has begun: put together once, since an image in it may come in thousands of them */
  #pieces: Array<Buffer> = []
  #bytes = 0
  /** the last bytes of `#pieces`, in which its end may have begun */
  #tail: Buffer = nothing

  /** @param maxBytes of one event; a longer one makes `push` answer false */
  constructor(maxBytes: number, onFrame: (frame: Buffer) => void) {
    this.#maxBytes = maxBytes
    this.#onFrame = onFrame
  }

  /** Calls `onFrame` for every event that is complete now; the frames share the bytes of `piece`. */
  push(piece: Buffer): boolean {
    let left = this.#pieces.length === 0 ? piece : this.#finish(piece)
    for (;;) {
      const end = left === undefined ? -1 : endOfFrame(left, 0)
      if (left === undefined || end < 0) break
      this.#onFrame(left.subarray(0, end))
      left = left.subarray(end)
    }
    if (left !== undefined && left.length > 0) this.#keep(left)
    return this.#bytes <= this.#maxBytes
  }

  /** What came after the last blank line: an event that was cut, or one whose end the sender left out. */
  get rest(): Buffer {
    return this.#pieces.length === 1 ? (this.#pieces[0] ?? nothing) : Buffer.concat(this.#pieces)
  }

  /** Ends the event that has begun, if `piece` does; answers what is behind it, undefined where it goes on. */
  #finish(piece: Buffer): Buffer | undefined {
    const end = endOfFrame(Buffer.concat([this.#tail, piece]), 0) - this.#tail.length
    if (end <= 0) {
      this.#keep(piece)
      return undefined
    }
    this.#pieces.push(piece.subarray(0, end))
    const frame = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    this.#tail = nothing
    this.#onFrame(frame)
    return piece.subarray(end)
  }

  #keep(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    const last = piece.length >= tailBytes ? piece : Buffer.concat([this.#tail, piece])
    this.#tail = last.subarray(-tailBytes)
  }
}

const nothing: Buffer = Buffer.alloc(0)

/** The longest end of an event, CRLF CRLF, without its last byte. */
const tailBytes = 3

const [lineFeed, carriageReturn] = [0x0a, 0x0d]

/** Just behind the first blank line at or after `from`, or -1. */
const endOfFrame = (bytes: Buffer, from: number): number => {
  let at = bytes.indexOf(lineFeed, from)
  while (at >= 0) {
    const next = bytes[at + 1]
    if (next === lineFeed) return at + 2
    if (next === carriageReturn && bytes[at + 2] === lineFeed) return at + 3
    at = bytes.indexOf(lineFeed, at + 1)
  }
  return -1
}

/** The data of an event: its `data` lines joined by LF; undefined for comments and events without data. */
export const dataOf = (frame: Buffer): string | undefined => {
  const lines: Array<string> = []
  for (const line of frame.toString("utf8").split(/\r?\n/)) {
    if (line.startsWith("data:")) lines.push(line.startsWith("data: ") ? line.slice(6) : line.slice(5))
  }
  return lines.length === 0 ? undefined : lines.join("\n")
}
