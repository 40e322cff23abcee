/** Longer texts are seldom the same, and would make the table large. */
const lengthMax = 256

/** The bytes that choose the place: the last ones, which differ most in paths. */
const hashedBytes = 16

/**
 * Texts that come again and again, each as one string: the memory of visits shares them, and comparing two is comparing
 * addresses. They are found by their bytes, so that a text that is known is not made again. Each has one place of `places`, a power
 * of two, and another text with the same place takes it.
 */
export class SharedTexts {
  readonly #texts: Array<string>

  constructor(places: number) {
    this.#texts = Array.from({ length: places }, () => "")
  }

  /** The bytes of `[from, to)`, one character each. */
  get(bytes: Buffer, from: number, to: number): string {
    const length = to - from
    if (length === 0) return ""
    if (length > lengthMax) return bytes.toString("latin1", from, to)
    let hash = length
    for (let at = Math.max(from, to - hashedBytes); at < to; at++) {
      hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193)
    }
    const place = (hash ^ (hash >>> 15)) & (this.#texts.length - 1)
    const known = this.#texts[place] as string
    if (isText(known, bytes, from, length)) return known
    const text = bytes.toString("latin1", from, to)
    this.#texts[place] = text
    return text
  }
}

const isText = (text: string, bytes: Buffer, from: number, length: number): boolean => {
  if (text.length !== length) return false
  for (let index = length - 1; index >= 0; index--) {
    if (text.charCodeAt(index) !== bytes[from + index]) return false
  }
  return true
}
