import { isUtf8 } from "node:buffer"
import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { mayBeUnfit, mendedJson } from "#schemas/core/JsonFitness.ts"
import { FieldFault, expected } from "./FieldFault.ts"

/** A shorter body cannot be nested deep enough to matter and is not looked through: most events are this short. */
const harmlessBytes = 1024

/**
 * The value of a JSON body, or the fault of `body`. Halves of surrogate pairs, which come from titles and names that a
 * page has cut, become U+FFFD: the visitor cannot help them, and the event counts. Keys such as `__proto__` become own properties of plain objects:
 * nothing here or behind copies them onto another one.
 */
export const parseJson = (bytes: Uint8Array): unknown => {
  if (!isUtf8(bytes)) return expected("body", "UTF-8")
  if (bytes.length > harmlessBytes && depthOf(bytes) > jsonDepthMax)
    return new FieldFault("body", `nested deeper than ${jsonDepthMax}`)
  try {
    const text = textDecoder.decode(bytes)
    const json: unknown = JSON.parse(text)
    if (!mayBeUnfit(text)) return json
    const whole = mendedJson(json)
    return whole === undefined ? new FieldFault("body", `nested deeper than ${jsonDepthMax}`) : whole
  } catch {
    return expected("body", "JSON")
  }
}

const textDecoder = new TextDecoder()
