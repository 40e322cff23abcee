/** What has to be done with an event of an upstream's stream, told from its bytes without reading it as JSON. */
export type FrameKind = "content" | "special" | "done" | "comment"

const [lineFeed, carriageReturn, colon, closeBrace, letterD, letterN, space] = [
  0x0a, 0x0d, 0x3a, 0x7d, 0x64, 0x6e, 0x20
]
const usageKey = Buffer.from('"usage"')
const errorKey = Buffer.from('"error"')
const finishKey = Buffer.from('"finish_reason"')
/** The beginning of `"cost"` and `"cost_details"`. */
const costKey = Buffer.from('"cost')
const emptyText = Buffer.from('""')

/**
 * "special" events carry usage, a cost, an error or the reason of an end, or are no plain line of data that ends with a
 * brace, and have to be read; "content" goes on as it is. Inside a JSON string a quote is escaped, so that the bytes
 * `"usage"` are never part of what a model says.
 */
export const kindOf = (frame: Buffer): FrameKind => {
  if (frame[0] !== letterD || frame[endOfText(frame) - 1] !== closeBrace) return kindOfAny(frame)
  return mentions(frame, usageKey) ||
    mentions(frame, errorKey) ||
    frame.includes(costKey) ||
    mentions(frame, finishKey)
    ? "special"
    : "content"
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

/** Whether the name stands there, but as a key whose value is null or "", which many upstreams send in every chunk. */
const mentions = (frame: Buffer, name: Buffer): boolean => {
  let at = frame.indexOf(name)
  while (at >= 0) {
    let next = at + name.length
    while (frame[next] === space) next++
    // As a value it counts too: `"finish_reason":"error"`.
    if (frame[next] !== colon) return true
    next++
    while (frame[next] === space) next++
    if (frame[next] !== letterN && !frame.subarray(next, next + 2).equals(emptyText)) return true
    at = frame.indexOf(name, at + name.length)
  }
  return false
}
