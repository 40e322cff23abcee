/**
 * Cuts an event stream into its events, each with the blank line that ends it, so that one can be passed on byte for
 * byte. Lines end with LF or CRLF. Source: HTML standard, 9.2.6 Interpreting an event stream (a lone CR, which it
 * allows too, is sent by nobody).
 */
export class SseFrames {
  readonly #maxBytes: number
  readonly #onFrame: (frame: Buffer) => void
  #rest: Buffer = Buffer.alloc(0)

  /** @param maxBytes of one event; a longer one makes `push` answer false */
  constructor(maxBytes: number, onFrame: (frame: Buffer) => void) {
    this.#maxBytes = maxBytes
    this.#onFrame = onFrame
  }

  /** Calls `onFrame` for every event that is complete now; the frames share the bytes of `piece`. */
  push(piece: Buffer): boolean {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    // What was looked at before is known to hold no end, but that an end may have begun in its last bytes.
    let from = Math.max(0, this.#rest.length - 3)
    let start = 0
    for (;;) {
      const end = endOfFrame(bytes, Math.max(start, from))
      if (end < 0) break
      this.#onFrame(bytes.subarray(start, end))
      start = end
      from = end
    }
    this.#rest = bytes.subarray(start)
    return this.#rest.length <= this.#maxBytes
  }

  /** What came after the last blank line: an event that was cut, or one whose end the sender left out. */
  get rest(): Buffer {
    return this.#rest
  }
}

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
