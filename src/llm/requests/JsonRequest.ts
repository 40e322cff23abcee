import { isUtf8 } from "node:buffer"
import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { RequestFault } from "./RequestFault.ts"

/** A body as JSON, within the limits that hold for every JSON body here. */
export const readJson = (bytes: Buffer): unknown => {
  if (depthOf(bytes) > jsonDepthMax) return new RequestFault("", `nested deeper than ${jsonDepthMax}`, null)
  if (!isUtf8(bytes)) return new RequestFault("", "the body is not UTF-8", null)
  try {
    return JSON.parse(bytes.toString("utf8"))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return new RequestFault("", `the body is no JSON: ${error.message}`, null)
  }
}
