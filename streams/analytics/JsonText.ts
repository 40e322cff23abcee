import { isUtf8 } from "node:buffer"
import { type JsonBounds, jsonExcess } from "#schemas/core/JsonBounds.ts"
import { jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { mayBeUnfit, mendedJson } from "#schemas/core/JsonFitness.ts"
import { FieldFault, expected } from "./FieldFault.ts"

/** A shorter body cannot hold enough to matter and is not looked through: most events are this short. */
const harmlessBytes = 1024

/** One event has some 40 members at most. */
const eventBounds: JsonBounds = { members: 1_000, values: 2_000 }

/**
 * The value of a JSON body, or the fault of `body`. Halves of surrogate pairs, which come from titles and names that a
 * page has cut, become U+FFFD: the visitor cannot help them, and the event counts. Keys such as `__proto__` become own properties of plain objects:
 * nothing here or behind copies them onto another one.
 */
export const parseJson = (bytes: Uint8Array, bounds: JsonBounds = eventBounds): unknown => {
  if (!isUtf8(bytes)) return expected("body", "UTF-8")
  const excess = bytes.length > harmlessBytes ? jsonExcess(bytes, bounds) : undefined
  if (excess !== undefined) return new FieldFault("body", excess)
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
