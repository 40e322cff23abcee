/** What has to be done with an event of an upstream's stream, told from its bytes without reading it as JSON. */
export type FrameKind = "content" | "special" | "done" | "comment" | "broken"

const [lineFeed, carriageReturn, colon, closeBrace, letterD, letterN, space] = [
  0x0a, 0x0d, 0x3a, 0x7d, 0x64, 0x6e, 0x20
]
const usageKey = Buffer.from('"usage"')
const errorKey = Buffer.from('"error"')
const doneMark = Buffer.from("[DONE]")

/**
 * "special" events carry usage or an error and have to be read; "content" goes on as it is. Inside a JSON string a quote
 * is escaped, so that the bytes `"usage"` are never part of what a model says. An event whose data does not end with a
 * brace is "broken": the upstream was cut, or sends no JSON.
 */
export const kindOf = (frame: Buffer): FrameKind => {
  const first = frame[0]
  if (first !== letterD) return first === colon || isBlank(frame) ? "comment" : kindOfMany(frame)
  const end = endOfText(frame)
  if (frame[end - 1] !== closeBrace) return isDone(frame, end) ? "done" : "broken"
  return hasValue(frame, usageKey) || hasValue(frame, errorKey) ? "special" : "content"
}

/** An event that begins with another field than data: read in full. */
const kindOfMany = (frame: Buffer): FrameKind => {
  const text = frame.toString("utf8")
  if (!/^data:/m.test(text)) return "comment"
  return /^data: ?\[DONE\]\s*$/m.test(text) ? "done" : "special"
}

const isBlank = (frame: Buffer): boolean =>
  frame.every((byte) => byte === lineFeed || byte === carriageReturn)

const endOfText = (frame: Buffer): number => {
  let end = frame.length
  while (end > 0 && (frame[end - 1] === lineFeed || frame[end - 1] === carriageReturn)) end--
  return end
}

const isDone = (frame: Buffer, end: number): boolean => {
  const at = frame.indexOf(doneMark)
  return at >= 0 && at <= 6 && frame.subarray(at + doneMark.length, end).every((byte) => byte === space)
}

/** Whether the key stands there with another value than null, which many upstreams send in every chunk. */
const hasValue = (frame: Buffer, key: Buffer): boolean => {
  let at = frame.indexOf(key)
  while (at >= 0) {
    let next = at + key.length
    while (frame[next] === space) next++
    if (frame[next] === colon) {
      next++
      while (frame[next] === space) next++
      if (frame[next] !== letterN) return true
    }
    at = frame.indexOf(key, at + key.length)
  }
  return false
}
