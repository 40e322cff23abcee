import { isUtf8 } from "node:buffer"
import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { jsonFaultOf, mayBeUnfit } from "#schemas/core/JsonFitness.ts"
import { RequestFault } from "./RequestFault.ts"

/** A body as JSON, within the limits that hold for every JSON body here. */
export const readJson = (bytes: Buffer): unknown => {
  if (depthOf(bytes) > jsonDepthMax) return new RequestFault("", `nested deeper than ${jsonDepthMax}`, null)
  if (!isUtf8(bytes)) return new RequestFault("", "the body is not UTF-8", null)
  try {
    const text = bytes.toString("utf8")
    const json: unknown = JSON.parse(text)
    const fault = mayBeUnfit(text) ? jsonFaultOf(json, { isNulRefused: false }) : undefined
    return fault === undefined ? json : new RequestFault(fault.field, fault.text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return new RequestFault("", `the body is no JSON: ${error.message}`, null)
  }
}
