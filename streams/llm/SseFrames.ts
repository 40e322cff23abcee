/**
 * Cuts an event stream into its events, each with the blank line that ends it, so that one can be passed on byte for
 * byte. Lines end with LF, CRLF or CR; an event with a CR that stands alone is rewritten with LF, which every client
 * reads. A byte order mark before the first event is left out. Source: HTML standard, 9.2.6 Interpreting an event stream.
 */
export class SseFrames {
  readonly #maxBytes: number
  readonly #onFrame: (frame: Buffer) => void
  /** the pieces of the event that has begun: put together once, since an image in it may come in thousands of them */
  #pieces: Array<Buffer> = []
  #bytes = 0
  /** the last bytes of `#pieces`, in which its end may have begun */
  #tail: Buffer = nothing
  #isFirst = true
  /** a CR has come: lines may end with it */
  #hasReturns = false

  /** @param maxBytes of one event; a longer one makes `push` answer false */
  constructor(maxBytes: number, onFrame: (frame: Buffer) => void) {
    this.#maxBytes = maxBytes
    this.#onFrame = onFrame
  }

  /** Calls `onFrame` for every event that is complete now; the frames share the bytes of `piece`. */
  push(piece: Buffer): boolean {
    this.#hasReturns ||= piece.includes(carriageReturn)
    if (this.#isOneEvent(piece)) {
      this.#onFrame(piece)
      return true
    }
    let left = this.#pieces.length === 0 ? piece : this.#finish(piece)
    for (;;) {
      const end = left === undefined ? -1 : this.#endIn(left)
      if (left === undefined || end < 0) break
      this.#give(left.subarray(0, end))
      left = left.subarray(end)
    }
    if (left !== undefined && left.length > 0) this.#keep(left)
    return this.#bytes <= this.#maxBytes
  }

  /** The bytes after the last blank line: an event that was cut, or one whose end the sender left out. */
  get rest(): Buffer {
    const rest = this.#pieces.length === 1 ? (this.#pieces[0] ?? nothing) : Buffer.concat(this.#pieces)
    return withLineFeeds(this.#isFirst ? withoutMark(rest) : rest)
  }

  /** Most pieces are one event, which is given as it came: 2.0 to 0.5 µs. */
  #isOneEvent(piece: Buffer): boolean {
    if (this.#isFirst || this.#hasReturns || this.#pieces.length > 0) return false
    return piece[piece.length - 1] === lineFeed && endAmongLineFeeds(piece) === piece.length
  }

  #give(frame: Buffer): void {
    const text = this.#isFirst ? withoutMark(frame) : frame
    this.#isFirst = false
    this.#onFrame(this.#hasReturns ? withLineFeeds(text) : text)
  }

  /** Ends the event that has begun, if `piece` does; answers what is behind it, undefined where it goes on. */
  #finish(piece: Buffer): Buffer | undefined {
    const end = this.#endIn(Buffer.concat([this.#tail, piece])) - this.#tail.length
    if (end < 0) {
      this.#keep(piece)
      return undefined
    }
    this.#pieces.push(piece.subarray(0, end))
    const frame = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    this.#tail = nothing
    this.#give(frame)
    return piece.subarray(end)
  }

  /** Just behind the first blank line, or -1. */
  #endIn(bytes: Buffer): number {
    return this.#hasReturns ? endAmongReturns(bytes) : endAmongLineFeeds(bytes)
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
const blankLine = Buffer.from("\n\n")

const endAmongLineFeeds = (bytes: Buffer): number => {
  const at = bytes.indexOf(blankLine)
  return at < 0 ? -1 : at + blankLine.length
}

/** The same where lines end in any of the three ways. */
const endAmongReturns = (bytes: Buffer): number => {
  for (let at = 0; at < bytes.length; at++) {
    const first = bytes[at]
    if (first !== lineFeed && first !== carriageReturn) continue
    const next = endOfLine(bytes, at)
    const end = endOfLine(bytes, next)
    // A CR at the end of the piece, where lines end with LF before it: its own LF is still to come.
    const isOpen = end === bytes.length && bytes[end - 1] === carriageReturn && bytes[next - 1] === lineFeed
    if (end > next && !isOpen) return end
    at = next - 1
  }
  return -1
}

/** Just behind the line end at `at`; `at` where there is none. */
const endOfLine = (bytes: Buffer, at: number): number => {
  if (bytes[at] === lineFeed) return at + 1
  if (bytes[at] !== carriageReturn) return at
  return bytes[at + 1] === lineFeed ? at + 2 : at + 1
}

const mark = Buffer.from("\uFEFF")

const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, mark.length).equals(mark) ? bytes.subarray(mark.length) : bytes

/** With LF in the place of every CR that stands alone. */
const withLineFeeds = (frame: Buffer): Buffer => {
  let at = frame.indexOf(carriageReturn)
  let own: Buffer | undefined
  while (at >= 0) {
    if (frame[at + 1] !== lineFeed) {
      own ??= Buffer.from(frame)
      own[at] = lineFeed
    }
    at = frame.indexOf(carriageReturn, at + 1)
  }
  return own ?? frame
}

/** The lines of an event's field, such as `data` or `event`, without one leading space. */
const fieldOf = (frame: Buffer, name: string): ReadonlyArray<string> => {
  const values: Array<string> = []
  for (const line of frame.toString("utf8").split(/\r\n|\n|\r/)) {
    if (!line.startsWith(`${name}:`)) continue
    const value = line.slice(name.length + 1)
    values.push(value.startsWith(" ") ? value.slice(1) : value)
  }
  return values
}

const onlyData = Buffer.from("data: ")

/** The data of an event: its `data` lines joined by LF; undefined for comments and events without data. */
export const dataOf = (frame: Buffer): string | undefined => {
  // Most events are one line of data.
  const end = frame.length - blankLine.length
  if (frame.indexOf(lineFeed) === end && !frame.includes(carriageReturn) && startsWith(frame, onlyData))
    return frame.toString("utf8", onlyData.length, end)
  const lines = fieldOf(frame, "data")
  return lines.length === 0 ? undefined : lines.join("\n")
}

/** The name of an event; undefined where it has none. */
export const eventNameOf = (frame: Buffer): string | undefined => fieldOf(frame, "event").at(-1)?.trim()

/** An event whose data is the JSON. */
export const frameOf = (json: object): Buffer => Buffer.from(`data: ${JSON.stringify(json)}\n\n`)

/** The handling of an event of an upstream's stream, told from its bytes without reading it as JSON. */
export type FrameKind = "content" | "special" | "done" | "comment"

const [closeBrace, letterD, space] = [0x7d, 0x64, 0x20]

/**
 * A name that matters, but as a key whose value is null or "", which many upstreams send in every chunk. As a value it
 * counts too: `"finish_reason":"error"`.
 */
const telling = /"(?:cost|(?:usage|error|finish_reason)"(?! *: *(?:n|"")))/

/**
 * "special" events carry usage, a cost, an error or the reason of an end, or are no plain line of data that ends with a
 * brace, and have to be read; "content" goes on as it is. Inside a JSON string a quote is escaped, so that the bytes
 * `"usage"` are never part of what a model says.
 */
export const kindOf = (frame: Buffer): FrameKind => {
  if (frame[0] !== letterD || frame[endOfText(frame) - 1] !== closeBrace) return kindOfAny(frame)
  // As Latin-1 no byte has to be decoded, and no other byte than its own becomes a quote.
  return telling.test(frame.toString("latin1")) ? "special" : "content"
}

/** Of an event in any shape: with further fields, comments, several lines of data, or none. */
const kindOfAny = (frame: Buffer): FrameKind => {
  const text = frame.toString("utf8")
  if (!/^data:[^\S\n]*\S/m.test(text)) return "comment"
  return /^data: *\[DONE\]\s*$/m.test(text) ? "done" : "special"
}

const startsWith = (frame: Buffer, start: Buffer): boolean =>
  frame.compare(start, 0, start.length, 0, Math.min(start.length, frame.length)) === 0

const endOfText = (frame: Buffer): number => {
  let end = frame.length
  while (end > 0 && isBlank(frame[end - 1])) end--
  return end
}

const isBlank = (byte: number | undefined): boolean =>
  byte === lineFeed || byte === carriageReturn || byte === space
