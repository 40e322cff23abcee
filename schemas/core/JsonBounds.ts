import { jsonDepthMax } from "./JsonDepth.ts"

/** Bounds of a JSON body. Objects of many members and lists of many values cost far more than their bytes. */
export interface JsonBounds {
  /** names of all objects together */
  readonly members: number
  /** values of all lists and objects together */
  readonly values: number
  /** lists and objects within each other; absent: `jsonDepthMax` */
  readonly depth?: number
}

const [quote, backslash, colon, comma, openBrace, openBracket, closeBrace, closeBracket] = [
  0x22, 0x5c, 0x3a, 0x2c, 0x7b, 0x5b, 0x7d, 0x5d
]

/**
 * The bound that a body exceeds, in words; undefined for none. One pass before parsing: the characters that count are
 * ASCII and outside strings, so UTF-8 need not be decoded. Bytes that are no JSON pass too: the parser refuses them.
 */
export const jsonExcess = (
  bytes: Uint8Array,
  { depth: depthMax = jsonDepthMax, members, values }: JsonBounds
): string | undefined => {
  let depth = 0
  let membersLeft = members
  let valuesLeft = values
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === quote) index = endOfString(bytes, index + 1)
    else if (byte === openBrace || byte === openBracket) {
      if (++depth > depthMax) return `nested deeper than ${depthMax}`
      if (--valuesLeft < 0) return `more than ${values} values`
    } else if (byte === closeBrace || byte === closeBracket) depth--
    else if (byte === comma) {
      if (--valuesLeft < 0) return `more than ${values} values`
    } else if (byte === colon && --membersLeft < 0) return `more than ${members} members`
  }
  return undefined
}

/** Names and most values are short: a call of `indexOf` would take longer than this loop. */
const shortBytes = 32

/** Index of the closing quote of the string that begins at `from`; the end of the bytes if it has none. */
const endOfString = (bytes: Uint8Array, from: number): number => {
  let index = from
  for (const shortEnd = Math.min(from + shortBytes, bytes.length); index < shortEnd; index++) {
    if (bytes[index] === backslash) index++
    else if (bytes[index] === quote) return index
  }
  while (index < bytes.length) {
    const found = bytes.indexOf(quote, index)
    if (found < 0) return bytes.length
    let escape = found
    while (escape > index && bytes[escape - 1] === backslash) escape--
    if ((found - escape) % 2 === 0) return found
    index = found + 1
  }
  return bytes.length
}
