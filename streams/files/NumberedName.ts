/** Bytes of a name in UTF-8 at most. */
const mostBytes = 255

/** Longer text behind the last dot is no extension. */
const extensionBytes = 20

/**
 * A name for a file whose own is taken, with a number before its extension: `may (2).pdf`. It is cut where it would be too
 * long; `suffix` is behind all of it.
 */
export const numberedName = (name: string, number: number, suffix = ""): string => {
  const dot = name.lastIndexOf(".")
  const extension = dot > 0 && Buffer.byteLength(name.slice(dot)) <= extensionBytes ? name.slice(dot) : ""
  const tail = ` (${number})${extension}${suffix}`
  let left = mostBytes - Buffer.byteLength(tail)
  let stem = ""
  for (const character of name.slice(0, name.length - extension.length)) {
    left -= Buffer.byteLength(character)
    if (left < 0) break
    stem += character
  }
  return stem + tail
}
