/** Arrays and objects within each other that a body may have. V8 takes millions, and a second for 8 MiB of brackets. */
export const jsonDepthMax = 64

const [quote, backslash, openBrace, openBracket, closeBrace, closeBracket] = [
  0x22, 0x5c, 0x7b, 0x5b, 0x7d, 0x5d
]

/** Brackets open at once, outside strings. They are ASCII, so bytes will do: UTF-8 has them nowhere else. */
export const depthOf = (bytes: Uint8Array): number => {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (inString) {
      if (byte === backslash) index++
      else if (byte === quote) inString = false
    } else if (byte === quote) inString = true
    else if (byte === openBrace || byte === openBracket) deepest = Math.max(deepest, ++depth)
    else if (byte === closeBrace || byte === closeBracket) depth--
  }
  return deepest
}
