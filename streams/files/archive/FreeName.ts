/**
 * The name of a file whose own is another one's: with a number before its extension, and cut where it would have more bytes of
 * UTF-8 than `mostBytes`. `suffix` is behind all of it.
 */
export const freeName = (name: string, suffix: string, number: number, mostBytes: number): string => {
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

/** What is longer behind the last dot is no extension. */
const extensionBytes = 20
