/** The instructions to the scripted upstream: the text of a prompt, as JSON. */
export interface Script {
  /** first so many calls of `tool` in one message; the rest follows their results */
  readonly calls?: number
  readonly tool?: "read" | "bash"
  /** then a text of so many pieces … */
  readonly pieces: number
  /** … one at a time, and all at once where this is 0 */
  readonly everyMillis: number
}

export const modelId = "bench/agent"

/** Of one piece; its stamp and its number are part of it. About four tokens. */
const pieceCharacters = 32
const numberDigits = 6

/** Of a clock that all processes of a machine share. */
export const nowMicros = (): number => {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1_000_000 + Math.floor(nanos / 1000)
}

/** Marks where a piece says when it left the upstream. */
const stampMark = "@"
const stampDigits = 15

/** Piece number `index` of a text, leaving now. */
export const pieceOf = (index: number): string =>
  `${stampMark}${String(nowMicros()).padStart(stampDigits, "0")}#${String(index).padStart(numberDigits, "0")} `.padEnd(
    pieceCharacters,
    "."
  )

/** Calls back with the time, in microseconds of `nowMicros`, at which each of the pieces in it left. */
export const stampsIn = (text: string, found: (leftAtMicros: number) => void): void => {
  let at = text.indexOf(stampMark)
  while (at >= 0 && at + stampDigits < text.length) {
    const end = at + 1 + stampDigits
    found(Number(text.slice(at + 1, end)))
    at = text.indexOf(stampMark, end)
  }
}

/** The text has exactly these pieces, each once and in order. */
export const isWhole = (text: string, pieces: number): boolean => {
  if (text.length !== pieces * pieceCharacters) return false
  for (let index = 0; index < pieces; index++) {
    const number = text.slice(index * pieceCharacters + stampDigits + 2).slice(0, numberDigits)
    if (Number(number) !== index) return false
  }
  return true
}
