const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" })

const ellipsis = "…"
const ellipsisBytes = 3

/** UTF-8 bytes that a code point takes within a JSON string. A lone surrogate is written as an escape. */
const bytesOf = (point: number): number => {
  if (point < 0x20)
    return point === 0x08 || point === 0x09 || point === 0x0a || point === 0x0c || point === 0x0d ? 2 : 6
  if (point === 0x22 || point === 0x5c) return 2
  if (point < 0x80) return 1
  if (point < 0x800) return 2
  if (point >= 0xd800 && point <= 0xdfff) return 6
  return point < 0x1_0000 ? 3 : 4
}

/** The place of the cut, or the beginning of the match that it would be within. */
const outside = (matches: RegExp, text: string, cut: number): number => {
  for (const { 0: match, index } of text.matchAll(matches)) {
    if (index >= cut) break
    if (cut < index + match.length) return index
  }
  return cut
}

/**
 * The text, or its longest beginning of whole graphemes and `…`, so that it takes at most `maxBytes` within a JSON string.
 * White space before the `…` goes too.
 *
 * @param whole finds (with the flag `g`) what is cut nowhere within
 */
export const cutForJson = (text: string, maxBytes: number, whole?: RegExp): string => {
  let bytes = 0
  let end = 0
  for (let at = 0; at < text.length;) {
    const point = text.codePointAt(at) ?? 0
    bytes += bytesOf(point)
    if (bytes > maxBytes) {
      if (maxBytes < ellipsisBytes) return ""
      const start = graphemes.segment(text).containing(end)?.index ?? 0
      const cut = whole === undefined ? start : outside(whole, text, start)
      return text.slice(0, cut).trimEnd() + ellipsis
    }
    at += point > 0xffff ? 2 : 1
    if (bytes <= maxBytes - ellipsisBytes) end = at
  }
  return text
}

/** A text shorter than this says too little: other parts give way to it. */
const textBytesMin = 200

/** A form of the content with this text, which is empty where the room for a cut one is measured. */
export type Form<A> = (text: string, isCut: boolean) => A

/**
 * The content as JSON of at most `maxBytes`: in its first form with the whole text; else in the first form that leaves room
 * for enough of it, with the text cut. The last form has to be one that always fits.
 */
export const fittedJson = (
  text: string,
  maxBytes: number,
  [form, ...leaner]: readonly [Form<unknown>, ...ReadonlyArray<Form<unknown>>]
): Buffer => {
  const whole = Buffer.from(JSON.stringify(form(text, false)))
  return whole.length <= maxBytes ? whole : cutJson(text, maxBytes, form, leaner)
}

const cutJson = (
  text: string,
  maxBytes: number,
  form: Form<unknown>,
  [next, ...leaner]: ReadonlyArray<Form<unknown>>
): Buffer => {
  const room = maxBytes - Buffer.byteLength(JSON.stringify(form("", true)))
  const cut = cutForJson(text, room)
  return next === undefined || room >= textBytesMin || cut === text
    ? Buffer.from(JSON.stringify(form(cut, true)))
    : cutJson(text, maxBytes, next, leaner)
}
