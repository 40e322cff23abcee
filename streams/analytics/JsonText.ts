import { isUtf8 } from "node:buffer"
import { FieldFault, expected } from "./FieldFault.ts"

/** Arrays and objects within each other. V8 takes millions, and a second for 8 MiB of nothing but brackets. */
export const jsonDepthMax = 64

/** A shorter body cannot be nested deep enough to matter and is not looked through: most events are this short. */
const harmlessBytes = 1024

/**
 * The value of a JSON body, or the fault of `body`. Keys such as `__proto__` become own properties of plain objects:
 * nothing here or behind copies them onto another one.
 */
export const parseJson = (bytes: Uint8Array): unknown => {
  if (!isUtf8(bytes)) return expected("body", "UTF-8")
  if (bytes.length > harmlessBytes && depthOf(bytes) > jsonDepthMax)
    return new FieldFault("body", `nested deeper than ${jsonDepthMax}`)
  try {
    return JSON.parse(textDecoder.decode(bytes))
  } catch {
    return expected("body", "JSON")
  }
}

const textDecoder = new TextDecoder()
const quote = 0x22
const backslash = 0x5c

/** Brackets open at once, outside strings. UTF-8 has these bytes nowhere but in these characters. */
const depthOf = (bytes: Uint8Array): number => {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (inString) {
      if (byte === backslash) index++
      else if (byte === quote) inString = false
    } else if (byte === quote) inString = true
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return deepest
}
