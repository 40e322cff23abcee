/** The handling of an event of an upstream's stream, told from its bytes without reading it as JSON. */
export type FrameKind = "content" | "special" | "done" | "comment"

const [lineFeed, carriageReturn, closeBrace, letterD, space] = [0x0a, 0x0d, 0x7d, 0x64, 0x20]

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

const endOfText = (frame: Buffer): number => {
  let end = frame.length
  while (end > 0 && isBlank(frame[end - 1])) end--
  return end
}

const isBlank = (byte: number | undefined): boolean =>
  byte === lineFeed || byte === carriageReturn || byte === space
