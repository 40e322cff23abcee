/** Up to here the engine's own search takes steps in proportion to the text, for any pattern. */
const shortPattern = 200

/** For each start of the pattern, how long an earlier start of it ends there. */
const borders = (pattern: string): Int32Array => {
  const table = new Int32Array(pattern.length)
  for (let at = 1, length = 0; at < pattern.length; at++) {
    while (length > 0 && pattern[at] !== pattern[length]) length = table[length - 1] ?? 0
    if (pattern[at] === pattern[length]) length++
    table[at] = length
  }
  return table
}

/**
 * `text.indexOf(pattern, from)` in linear time (Knuth, Morris and Pratt). The engine's own needs minutes where a server that
 * wants to stop a client writes a long text of one letter, and searches it for another one.
 */
export const indexOfLinear = (text: string, pattern: string, from: number): number => {
  if (pattern.length <= shortPattern) return text.indexOf(pattern, from)
  const table = borders(pattern)
  for (let at = from, length = 0; at < text.length; at++) {
    while (length > 0 && text[at] !== pattern[length]) length = table[length - 1] ?? 0
    if (text[at] === pattern[length]) length++
    if (length === pattern.length) return at - length + 1
  }
  return -1
}
