import { jsonDepthMax } from "./JsonDepth.ts"

/** Bounds of a JSON body. Objects of many members and lists of many values cost far more than their bytes. */
export interface JsonBounds {
  /** names of all objects together */
  readonly members: number
  /** values of all lists and objects together */
  readonly values: number
}

const [quote, backslash, colon, comma, openBrace, openBracket, closeBrace, closeBracket] = [
  0x22, 0x5c, 0x3a, 0x2c, 0x7b, 0x5b, 0x7d, 0x5d
]

/**
 * Which bound a body passes, in words; undefined for none. One look at the bytes, before anything is made of them: what
 * counts is ASCII and outside strings, so UTF-8 need not be decoded. Bytes that are no JSON pass too: the parser says so.
 */
export const jsonExcess = (bytes: Uint8Array, { members, values }: JsonBounds): string | undefined => {
  let depth = 0
  let membersLeft = members
  let valuesLeft = values
  let inString = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (inString) {
      if (byte === backslash) index++
      else if (byte === quote) inString = false
    } else if (byte === quote) inString = true
    else if (byte === openBrace || byte === openBracket) {
      if (++depth > jsonDepthMax) return `nested deeper than ${jsonDepthMax}`
      if (--valuesLeft < 0) return `more than ${values} values`
    } else if (byte === closeBrace || byte === closeBracket) depth--
    else if (byte === comma) {
      if (--valuesLeft < 0) return `more than ${values} values`
    } else if (byte === colon && --membersLeft < 0) return `more than ${members} members`
  }
  return undefined
}
